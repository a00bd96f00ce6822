package dev.vgpu.k8s.scheduler.line;

import static org.assertj.core.api.Assertions.assertThat;

import dev.vgpu.k8s.scheduler.Pods;
import dev.vgpu.request.MemorySize;
import io.fabric8.kubernetes.api.model.Container;
import io.fabric8.kubernetes.api.model.ContainerBuilder;
import io.fabric8.kubernetes.api.model.Pod;
import io.fabric8.kubernetes.api.model.Quantity;
import io.fabric8.kubernetes.api.model.ResourceRequirementsBuilder;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/** What kube-scheduler counts for a pod, in Kubernetes' PodRequests of component-helpers. */
class HostDemandTest {
  /** Each number is processors, and as many GiB; a sidecar has a plus. */
  private static List<Container> containers(String numbers) {
    return Arrays.stream(numbers.split(" ", -1))
        .filter(number -> !number.isEmpty())
        .map(
            number ->
                new ContainerBuilder()
                    .withName("c")
                    .withRestartPolicy(number.startsWith("+") ? "Always" : null)
                    .withNewResources()
                    .withRequests(amounts(number.replace("+", "")))
                    .endResources()
                    .build())
        .toList();
  }

  private static Map<String, Quantity> amounts(String number) {
    return number.isEmpty()
        ? Map.of()
        : Map.of("cpu", new Quantity(number), "memory", new Quantity(number + "Gi"));
  }

  @ParameterizedTest
  @CsvSource({
    "1 2, '', '', '', 3",
    "1 2, 2 1, '', '', 3",
    "1 2, 5 1, '', '', 5",
    "1 2, +2, '', '', 5",
    "1, +2 4, '', '', 6",
    "1, 4 +2, '', '', 4",
    "1, +2 +3 1, '', '', 6",
    "1, +1 9 +1, '', '', 10",
    "1 2, 5, 4, '', 4",
    "1 2, +1, '', 1, 5",
    "1 2, '', 8, 1, 9",
    "'', '', '', '', 0"
  })
  void theDemandIsThatOfKubeScheduler(
      String main, String early, String whole, String overhead, int expected) {
    Pod pod = Pods.pod("a", Map.of(), Map.of());
    pod.getSpec().setContainers(containers(main));
    pod.getSpec().setInitContainers(containers(early));
    pod.getSpec().setOverhead(amounts(overhead));
    pod.getSpec()
        .setResources(new ResourceRequirementsBuilder().withRequests(amounts(whole)).build());
    assertThat(HostDemand.of(pod))
        .isEqualTo(new HostDemand(expected * 1000, MemorySize.ofGibibytes(expected)));
  }
}
