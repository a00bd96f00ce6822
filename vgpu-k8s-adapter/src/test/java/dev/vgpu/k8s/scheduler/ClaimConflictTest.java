package dev.vgpu.k8s.scheduler;

import static org.assertj.core.api.Assertions.assertThat;

import dev.vgpu.k8s.names.Driver;
import dev.vgpu.k8s.node.MockApi;
import io.fabric8.kubernetes.api.model.Pod;
import io.fabric8.kubernetes.api.model.resource.v1.ResourceClaim;
import io.fabric8.kubernetes.client.KubernetesClient;
import io.fabric8.kubernetes.client.utils.Serialization;
import java.util.List;
import java.util.Set;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/** Claims whose status cannot be written, beside others. */
class ClaimConflictTest {
  private static Pod podWithClaim(KubernetesClient api, String name) {
    ResourceClaim claim =
        Serialization.unmarshal(
            """
            {"apiVersion":"resource.k8s.io/v1","kind":"ResourceClaim",
             "metadata":{"name":"NAME","namespace":"default"},
             "spec":{"devices":{"requests":[]}},
             "status":{"reservedFor":[{"resource":"pods","name":"NAME","uid":"uid-NAME"}],
              "allocation":{"allocationTimestamp":"2026-01-01T00:00:00Z","devices":{
               "results":[{"request":"gpu","driver":"vgpu.dev","pool":"n","device":"gpu-0",
                "bindingConditions":["vgpu.dev/gang-complete"],
                "shareID":"a671734a-e8e5-11e4-8fde-42010af09327"}]}}}}"""
                .replace("NAME", name),
            ResourceClaim.class);
    api.resource(claim).create();
    return Pods.withClaim(name, Pods.gang("ring", 2), Claims.NOW.toString());
  }

  private static long complete(KubernetesClient api) {
    return api.resources(ResourceClaim.class).inNamespace("default").list().getItems().stream()
        .filter(claim -> Serialization.asJson(claim.getStatus()).contains("\"reason\""))
        .filter(claim -> Serialization.asJson(claim).contains("\"" + Driver.GANG_COMPLETE + "\""))
        .count();
  }

  /** Somebody else writes a claim between its being read and its status being written. */
  @Test
  void theOtherClaimsAreWrittenAndThisOneAtTheNextLook() {
    try (MockApi server = new MockApi();
        KubernetesClient api = server.client();
        ClaimWatch watch = Claims.watch(api)) {
      List<Pod> pods = Stream.of("a", "b").map(name -> podWithClaim(api, name)).toList();
      server.conflicts.set(1);
      watch.begin();
      watch.tick(pods, Set.of());
      assertThat(server.conflicts.get()).isZero();
      assertThat(complete(api)).isEqualTo(1);
      watch.begin();
      watch.tick(pods, Set.of());
      assertThat(complete(api)).isEqualTo(2);
    }
  }

  /** A webhook, or the API server, does not accept what one claim has by now. */
  @ParameterizedTest
  @CsvSource({"a, 422", "b, 422", "a, 403", "b, 400"})
  void aClaimWhoseStatusIsRefusedKeepsNobodyWaiting(String refused, int status) {
    try (MockApi server = new MockApi();
        KubernetesClient api = server.client();
        ClaimWatch watch = Claims.watch(api)) {
      List<Pod> pods = Stream.of("a", "b").map(name -> podWithClaim(api, name)).toList();
      server.missing.put("/resourceclaims/" + refused + "/status", status);
      watch.begin();
      watch.tick(pods, Set.of());
      assertThat(complete(api)).isEqualTo(1);
    }
  }
}
