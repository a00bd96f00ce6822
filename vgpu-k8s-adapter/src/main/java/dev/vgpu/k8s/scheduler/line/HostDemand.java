package dev.vgpu.k8s.scheduler.line;

import dev.vgpu.fleet.model.NodeState;
import dev.vgpu.request.MemorySize;
import io.fabric8.kubernetes.api.model.Container;
import io.fabric8.kubernetes.api.model.Pod;
import io.fabric8.kubernetes.api.model.PodSpec;
import io.fabric8.kubernetes.api.model.Quantity;
import io.fabric8.kubernetes.api.model.ResourceRequirements;
import java.math.BigDecimal;
import java.math.RoundingMode;
import java.util.List;
import java.util.Optional;

/**
 * What a pod needs of its node besides GPUs, as kube-scheduler counts it. Containers and sidecars
 * run together; each other init container runs beside the sidecars before it. A request of the
 * whole pod replaces all that. What the pod's runtime needs comes on top. Immutable.
 *
 * @param cpuMillis thousandths of a processor
 * @param memory host memory
 */
record HostDemand(int cpuMillis, MemorySize memory) {
  private static final BigDecimal MOST_CPU = BigDecimal.valueOf(Integer.MAX_VALUE, 3);
  private static final BigDecimal MOST_BYTES = BigDecimal.valueOf(Long.MAX_VALUE);

  static HostDemand of(Pod pod) {
    return new HostDemand(
        amount(pod, "cpu")
            .min(MOST_CPU)
            .movePointRight(3)
            .setScale(0, RoundingMode.CEILING)
            .intValue(),
        MemorySize.ofBytes(
            amount(pod, "memory").min(MOST_BYTES).setScale(0, RoundingMode.CEILING).longValue()));
  }

  /** {@return what is free of this} */
  HostDemand atMost(NodeState free) {
    MemorySize most = MemorySize.ofMebibytes(free.hostMebibytes());
    return new HostDemand(
        Math.min(cpuMillis, free.cpuMillis()), memory.compareTo(most) < 0 ? memory : most);
  }

  private static BigDecimal amount(Pod pod, String name) {
    PodSpec spec = pod.getSpec();
    Optional<Quantity> all =
        Optional.ofNullable(spec.getResources())
            .map(ResourceRequirements::getRequests)
            .map(requests -> requests.get(name));
    BigDecimal demand = all.map(Quantity::getNumericalAmount).orElseGet(() -> sum(spec, name));
    return Optional.ofNullable(spec.getOverhead())
        .map(overhead -> overhead.get(name))
        .map(Quantity::getNumericalAmount)
        .map(demand::add)
        .orElse(demand);
  }

  private static BigDecimal sum(PodSpec spec, String name) {
    BigDecimal sum = BigDecimal.ZERO;
    for (Container one : list(spec.getContainers())) {
      sum = sum.add(amount(one, name));
    }
    BigDecimal most = sum;
    BigDecimal sidecars = BigDecimal.ZERO;
    for (Container one : list(spec.getInitContainers())) {
      BigDecimal together = sidecars.add(amount(one, name));
      most = most.max(together);
      if ("Always".equals(one.getRestartPolicy())) {
        sidecars = together;
      }
    }
    return most.max(sum.add(sidecars));
  }

  private static List<Container> list(List<Container> all) {
    return all == null ? List.of() : all;
  }

  private static BigDecimal amount(Container container, String name) {
    if (container.getResources() == null || container.getResources().getRequests() == null) {
      return BigDecimal.ZERO;
    }
    Quantity quantity = container.getResources().getRequests().get(name);
    return quantity == null ? BigDecimal.ZERO : quantity.getNumericalAmount();
  }
}
