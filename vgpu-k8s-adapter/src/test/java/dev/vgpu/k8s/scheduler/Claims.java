package dev.vgpu.k8s.scheduler;

import io.fabric8.kubernetes.client.KubernetesClient;
import java.time.Duration;
import java.time.Instant;
import java.time.ZoneOffset;

/** What tests of claims begin with. */
final class Claims {
  /** The time of day, which stands still. */
  static final Instant NOW = Instant.parse("2026-01-01T00:00:00Z");

  private Claims() {}

  /** A leader's watch. Must be closed. */
  static ClaimWatch watch(KubernetesClient api) {
    return new ClaimWatch(
        api,
        new Cluster(api, () -> true),
        Duration.ofSeconds(60),
        () -> 0,
        () -> NOW.atZone(ZoneOffset.UTC));
  }
}
