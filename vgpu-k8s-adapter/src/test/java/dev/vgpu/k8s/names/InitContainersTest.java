package dev.vgpu.k8s.names;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.fabric8.kubernetes.api.model.Container;
import io.fabric8.kubernetes.api.model.ContainerBuilder;
import io.fabric8.kubernetes.api.model.Pod;
import io.fabric8.kubernetes.api.model.PodBuilder;
import io.fabric8.kubernetes.api.model.Quantity;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** What init containers may request. The kubelet does not tell which devices they have. */
class InitContainersTest {
  private static final Map<String, String> WHOLE = Map.of("nvidia.com/gpu", "1");

  private static Pod pod(Map<String, String> limits) {
    return new PodBuilder()
        .withNewMetadata()
        .withName("p")
        .withNamespace("d")
        .endMetadata()
        .withNewSpec()
        .addNewContainer()
        .withName("main")
        .withNewResources()
        .addToLimits(quantities(limits))
        .endResources()
        .endContainer()
        .endSpec()
        .build();
  }

  private static Map<String, Quantity> quantities(Map<String, String> limits) {
    Map<String, Quantity> all = new HashMap<>();
    limits.forEach((name, amount) -> all.put(name, new Quantity(amount)));
    return all;
  }

  private static Pod early(Map<String, String> limits, String resource, String amount) {
    return new PodBuilder(pod(limits))
        .editSpec()
        .addNewInitContainer()
        .withName("early")
        .withNewResources()
        .addToLimits(quantities(Map.of(resource, amount)))
        .endResources()
        .endInitContainer()
        .endSpec()
        .build();
  }

  @ParameterizedTest
  @ValueSource(
      strings = {
        "vgpu.dev/slot",
        "aliyun.com/gpu-mem",
        "tencent.com/vcuda-core",
        "tke.cloud.tencent.com/qgpu-core",
        "volcano.sh/vgpu-number",
        "koordinator.sh/gpu"
      })
  void gpusOfInitContainersAreRefused(String resource) {
    for (Map<String, String> limits : List.of(Map.<String, String>of(), WHOLE)) {
      Pod init = early(limits, resource, "1");
      Pod sidecar = early(limits, resource, "1");
      sidecar.getSpec().getInitContainers().get(0).setRestartPolicy("Always");
      for (Pod pod : List.of(init, sidecar)) {
        assertThatThrownBy(() -> PodRequests.of(pod))
            .isInstanceOf(PodRefusedException.class)
            .hasMessageContaining(resource + "] are asked by the init container early");
      }
    }
  }

  private static Container container(String name, String gpus) {
    return new ContainerBuilder()
        .withName(name)
        .withNewResources()
        .addToLimits("nvidia.com/gpu", new Quantity(gpus))
        .endResources()
        .build();
  }

  private static Container sidecar(String name, String gpus) {
    return new ContainerBuilder(container(name, gpus)).withRestartPolicy("Always").build();
  }

  private static Pod pod(List<Container> early, Container... containers) {
    return new PodBuilder(pod(Map.of()))
        .editSpec()
        .withInitContainers(early)
        .withContainers(containers)
        .endSpec()
        .build();
  }

  /** As many as kube-scheduler and the kubelet count: containers use those of init containers. */
  @Test
  void wholeGpusOfSeveralContainersAreCountedTogether() {
    Map<Pod, Integer> counts =
        Map.of(
            pod(List.of(container("i", "1")), container("a", "1")), 1,
            pod(List.of(container("i", "4")), container("a", "1"), container("b", "2")), 4,
            pod(List.of(), container("a", "1"), container("b", "2")), 3,
            pod(List.of(sidecar("s", "1"), container("i", "2")), container("a", "1")), 3,
            pod(List.of(sidecar("s", "1")), container("a", "4")), 5,
            pod(List.of(container("i", "2")), container("a", "0")), 2);
    counts.forEach(
        (pod, gpus) -> {
          Pod before = new PodBuilder(pod).build();
          PodRequest request = PodRequests.of(pod).orElseThrow();
          assertThat(request.gpus()).isEqualTo(gpus);
          assertThat(request.isWhole()).isTrue();
          assertThat(request.isOfOneContainer()).isFalse();
          assertThat(request.resources()).containsExactly(KubeletResource.HAMI);
          assertThat(pod).isEqualTo(before);
        });
    assertThat(PodRequests.of(pod(WHOLE)).orElseThrow().isOfOneContainer()).isTrue();
  }

  @Test
  void partsOfGpusAreForOneContainer() {
    Pod pod =
        early(Map.of("nvidia.com/gpu", "1", "nvidia.com/gpumem", "3000"), "nvidia.com/gpu", "1");
    assertThatThrownBy(() -> PodRequests.of(pod))
        .isInstanceOf(PodRefusedException.class)
        .hasMessageContaining("nvidia.com/gpu] are asked by the init container early");
  }

  @Test
  void theirOtherResourcesAreNotRead() {
    assertThat(PodRequests.of(early(WHOLE, "rdma/hca", "1"))).isPresent();
    assertThat(PodRequests.of(early(WHOLE, "nvidia.com/gpu", "0"))).isPresent();
    assertThat(PodRequests.of(early(Map.of(), "nvidia.com/gpu", "0"))).isEmpty();
  }

  @Test
  void aPodIsOthersIfItsResourcesGiveItNoGpu() {
    assertThat(PodRequests.isOthers(early(Map.of(), "nvidia.com/gpu", "0"))).isTrue();
    assertThat(PodRequests.isOthers(pod(Map.of("nvidia.com/priority", "1")))).isTrue();
    assertThat(PodRequests.isOthers(pod(Map.of("cpu", "1")))).isFalse();
    assertThat(PodRequests.isOthers(pod(WHOLE))).isFalse();
    assertThat(PodRequests.isOthers(pod(Map.of("vgpu.dev/slot", "1")))).isFalse();
  }
}
