package dev.vgpu.k8s.node.slot;

import com.fasterxml.jackson.core.JsonProcessingException;
import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import dev.vgpu.k8s.names.Driver;
import dev.vgpu.k8s.names.KubeletResource;
import dev.vgpu.k8s.node.dra.ShareParameters;
import dev.vgpu.k8s.node.holding.Terms;
import dev.vgpu.request.Capabilities;
import dev.vgpu.request.GpuId;
import dev.vgpu.request.MemorySize;
import dev.vgpu.request.PreemptionClass;
import dev.vgpu.request.SharePolicy;
import io.fabric8.kubernetes.api.model.Container;
import io.fabric8.kubernetes.api.model.Pod;
import io.fabric8.kubernetes.api.model.Quantity;
import java.math.BigDecimal;
import java.util.ArrayList;
import java.util.Collection;
import java.util.Comparator;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.OptionalInt;
import java.util.function.Function;
import java.util.stream.Stream;

/** Reads from a pod what the scheduler has reserved for its containers. */
final class Reservations {
  private static final ObjectMapper JSON = new ObjectMapper();

  private Reservations() {}

  /**
   * {@return the properties of a container's virtual GPU}
   *
   * @param pod the API's object
   * @param container the container's name
   * @param offered the resources of the device plugin
   * @param usable how much memory a GPU of the node can give
   * @throws IllegalArgumentException if nothing is reserved for the container, the reservation is
   *     not valid, or the container does not request exactly one of the resources
   */
  static Terms of(
      Pod pod,
      String container,
      Collection<KubeletResource> offered,
      Function<GpuId, MemorySize> usable) {
    Container found =
        containers(pod)
            .filter(each -> each.getName().equals(container))
            .findFirst()
            .orElseThrow(
                () -> new IllegalArgumentException("the pod has no container " + container));
    Map<String, Quantity> limits = limits(found);
    List<String> asked =
        offered.stream()
            .filter(
                one -> {
                  Quantity amount = limits.get(one.resource());
                  return amount != null && one.gives(amount.getNumericalAmount());
                })
            .map(KubeletResource::resource)
            .toList();
    if (asked.size() != 1) {
      throw new IllegalArgumentException(
          "the container must ask for one resource of vgpu's device plugin: container="
              + container
              + " asked="
              + asked);
    }
    Map<String, String> annotations = pod.getMetadata().getAnnotations();
    String text = annotations == null ? null : annotations.get(Driver.RESERVATION);
    if (text == null) {
      throw new IllegalArgumentException(
          "nothing is reserved for the pod: it lacks the annotation "
              + Driver.RESERVATION
              + ", which vgpu's scheduler puts there");
    }
    try {
      JsonNode reservation = JSON.readTree(text).path(container);
      if (reservation.isMissingNode()) {
        throw new IllegalArgumentException("nothing is reserved for the container " + container);
      }
      return terms(reservation, usable);
    } catch (JsonProcessingException e) {
      throw new IllegalArgumentException(
          "the annotation " + Driver.RESERVATION + " is no JSON: " + e.getOriginalMessage(), e);
    }
  }

  private static Stream<Container> containers(Pod pod) {
    return Stream.concat(
        pod.getSpec().getContainers().stream(),
        Optional.ofNullable(pod.getSpec().getInitContainers()).stream()
            .flatMap(each -> each.stream()));
  }

  private static Map<String, Quantity> limits(Container container) {
    if (container.getResources() == null || container.getResources().getLimits() == null) {
      return Map.of();
    }
    return container.getResources().getLimits();
  }

  private static Terms terms(JsonNode reservation, Function<GpuId, MemorySize> usable) {
    List<GpuId> gpus = gpus(reservation);
    // The smallest: a quota is the same on all GPUs of a virtual GPU.
    MemorySize most =
        gpus.stream().map(usable).min(Comparator.naturalOrder()).orElse(MemorySize.ZERO);
    boolean isWhole = reservation.path("whole").asBoolean();
    JsonNode share = reservation.path("share");
    OptionalInt percent =
        isWhole
            ? OptionalInt.of(100)
            : share.isInt() ? OptionalInt.of(share.asInt()) : OptionalInt.empty();
    SharePolicy policy =
        ShareParameters.word(
            SharePolicy.class,
            reservation,
            "policy",
            percent.isPresent() ? SharePolicy.FIXED_SHARE : SharePolicy.BEST_EFFORT);
    return new Terms(
        gpus,
        Optional.empty(),
        policy == SharePolicy.BEST_EFFORT ? OptionalInt.empty() : percent,
        isWhole ? most : memory(reservation, most),
        policy,
        ShareParameters.word(PreemptionClass.class, reservation, "class", PreemptionClass.NEARLINE),
        Capabilities.FaultIsolation.NONE,
        Capabilities.Compute.NONE);
  }

  private static List<GpuId> gpus(JsonNode reservation) {
    List<GpuId> gpus = new ArrayList<>();
    reservation.path("gpus").forEach(gpu -> gpus.add(new GpuId(gpu.asText("unknown"))));
    return gpus.isEmpty() ? List.of(new GpuId(reservation.path("gpu").asText("unknown"))) : gpus;
  }

  private static MemorySize memory(JsonNode reservation, MemorySize usable) {
    JsonNode percent = reservation.path("memoryPercent");
    if (percent.isInt()) {
      return MemorySize.ofBytes(
          BigDecimal.valueOf(usable.bytes())
              .multiply(BigDecimal.valueOf(percent.asInt()))
              .movePointLeft(2)
              .longValue());
    }
    return MemorySize.ofBytes(
        Quantity.getAmountInBytes(new Quantity(reservation.path("memory").asText("0")))
            .longValueExact());
  }
}
