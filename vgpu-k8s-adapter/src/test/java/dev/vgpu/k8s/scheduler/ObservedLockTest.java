package dev.vgpu.k8s.scheduler;

import static org.assertj.core.api.Assertions.assertThat;

import dev.vgpu.k8s.node.MockApi;
import io.fabric8.kubernetes.client.KubernetesClient;
import io.fabric8.kubernetes.client.extended.leaderelection.resourcelock.LeaderElectionRecord;
import io.fabric8.kubernetes.client.extended.leaderelection.resourcelock.LeaseLock;
import java.time.Duration;
import java.time.ZoneOffset;
import java.time.ZonedDateTime;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** A standby process looks at the lease of a leader whose clock is wrong. */
class ObservedLockTest {
  private static final Duration LEASE = Duration.ofSeconds(15);
  private static final ZonedDateTime START =
      ZonedDateTime.of(2026, 1, 1, 0, 0, 0, 0, ZoneOffset.UTC);

  private final MockApi server = new MockApi();
  private final LeaseLock leader = new LeaseLock("default", "lease", "leader");
  private KubernetesClient api;
  private ObservedLock standby;
  private double nowS;
  private double wallStepS;

  @BeforeEach
  void open() {
    api = server.client();
    standby =
        new ObservedLock(new LeaseLock("default", "lease", "standby"), () -> nowS, this::wall);
  }

  @AfterEach
  void close() {
    api.close();
    server.close();
  }

  private ZonedDateTime wall() {
    return START.plusNanos((long) ((nowS + wallStepS) * 1e9));
  }

  private LeaderElectionRecord record(double clockIsWrongByS) {
    return new LeaderElectionRecord(
        "leader", LEASE, START, START.plusNanos((long) ((nowS + clockIsWrongByS) * 1e9)), 0);
  }

  /** The elector's rule. */
  private boolean isExpired() {
    LeaderElectionRecord seen = standby.get(api);
    return wall().isAfter(seen.getRenewTime().plus(seen.getLeaseDuration()));
  }

  private void renew(double clockIsWrongByS) {
    LeaderElectionRecord ignored = leader.get(api);
    leader.update(api, record(clockIsWrongByS));
  }

  @ParameterizedTest
  @ValueSource(doubles = {-3600, -16, 0, 16, 3600})
  void aLeaseLastsAsLongAsItsLeaderLivesAndNoLonger(double clockIsWrongByS) {
    leader.create(api, record(clockIsWrongByS));
    for (int i = 0; i < 20; i++) {
      assertThat(isExpired()).isFalse();
      nowS += 2;
      renew(clockIsWrongByS);
    }
    assertThat(isExpired()).isFalse();
    nowS += 14;
    assertThat(isExpired()).isFalse();
    nowS += 2;
    assertThat(isExpired()).as("the leader is dead").isTrue();
  }

  @Test
  void aStepOfTheOwnClockDoesNotCount() {
    leader.create(api, record(0));
    assertThat(isExpired()).isFalse();
    nowS += 2;
    wallStepS = 3600;
    assertThat(isExpired()).isFalse();
    wallStepS = -3600;
    nowS += 14;
    assertThat(isExpired()).isTrue();
  }

  @Test
  void withoutALeaseThereIsNone() {
    assertThat(standby.get(api)).isNull();
  }
}
