package dev.vgpu.k8s.scheduler;

import static org.assertj.core.api.Assertions.assertThat;

import dev.vgpu.k8s.names.Driver;
import dev.vgpu.k8s.node.MockApi;
import io.fabric8.kubernetes.api.model.Pod;
import io.fabric8.kubernetes.api.model.resource.v1.ResourceClaim;
import io.fabric8.kubernetes.api.model.resource.v1.ResourceSlice;
import io.fabric8.kubernetes.client.KubernetesClient;
import io.fabric8.kubernetes.client.utils.Serialization;
import java.util.List;
import java.util.Map;
import java.util.Set;
import org.junit.jupiter.api.Test;

/** Slices that are there for some time after their nodes. */
class DeletedNodesTest {
  private static void slice(KubernetesClient api, String node) {
    String text =
        """
        {"apiVersion":"resource.k8s.io/v1","kind":"ResourceSlice","metadata":{"name":"NODE"},
         "spec":{"driver":"vgpu.dev","nodeName":"NODE","pool":{"name":"NODE"},"devices":[
          {"name":"gpu-0","capacity":{"share":{"value":"100"},"memory":{"value":"8Gi"}}}]}}""";
    api.resource(Serialization.unmarshal(text.replace("NODE", node), ResourceSlice.class)).create();
  }

  /** A pod with a claim of a whole GPU, and the claim's devices. */
  private static Pod pod(
      KubernetesClient api, String name, Map<String, String> gang, String status) {
    String text =
        """
        {"apiVersion":"resource.k8s.io/v1","kind":"ResourceClaim",
         "metadata":{"name":"NAME","namespace":"default"},"spec":{"devices":{"requests":[
          {"name":"gpu","exactly":{"deviceClassName":"vgpu.dev"}}]}},"status":STATUS}""";
    api.resource(
            Serialization.unmarshal(
                text.replace("STATUS", status).replace("NAME", name), ResourceClaim.class))
        .create();
    return Pods.withClaim(name, gang, Claims.NOW.toString());
  }

  private static boolean hasFailed(KubernetesClient api) {
    return Serialization.asJson(
            api.resources(ResourceClaim.class).inNamespace("default").withName("pair-0").get())
        .contains("\"" + Driver.GANG_FAILED + "\"");
  }

  @Test
  void theirGpusAreNoRoomForAGang() {
    try (MockApi server = new MockApi();
        KubernetesClient api = server.client();
        ClaimWatch watch = Claims.watch(api)) {
      slice(api, "there");
      slice(api, "deleted");
      String held =
          """
          {"reservedFor":[{"resource":"pods","name":"NAME","uid":"uid-NAME"}],
           "allocation":{"devices":{"results":[{"request":"gpu","driver":"vgpu.dev",
            "pool":"there","device":"gpu-0","bindingConditions":["vgpu.dev/gang-complete"],
            "consumedCapacity":{"share":"100","memory":"8Gi"}}]}}}""";
      Map<String, String> gang = Pods.gang("pair", 2);
      List<Pod> pods =
          List.of(
              pod(api, "pair-0", gang, held),
              pod(api, "pair-1", gang, "{}"),
              pod(api, "waits", Map.of(), "{}"));
      watch.begin();
      watch.tick(pods, Set.of("there", "deleted"));
      assertThat(hasFailed(api)).isFalse();
      watch.tick(pods, Set.of("there"));
      assertThat(hasFailed(api)).isTrue();
    }
  }
}
