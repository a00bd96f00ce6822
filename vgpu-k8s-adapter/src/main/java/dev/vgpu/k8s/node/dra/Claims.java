package dev.vgpu.k8s.node.dra;

import com.fasterxml.jackson.databind.JsonNode;
import dev.vgpu.GpuId;
import dev.vgpu.MemorySize;
import dev.vgpu.SharePolicy;
import dev.vgpu.k8s.Driver;
import dev.vgpu.k8s.node.holding.Holding;
import dev.vgpu.k8s.node.holding.Holding.Owner;
import dev.vgpu.k8s.node.holding.Holding.Part;
import dev.vgpu.k8s.node.holding.Holding.Stage;
import dev.vgpu.k8s.node.holding.Terms;
import io.fabric8.kubernetes.api.model.Quantity;
import java.math.BigDecimal;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.OptionalInt;
import java.util.Set;

/** Reads what an allocated claim requests of this node. Immutable. */
final class Claims {
  private final String nodePool;
  private final Map<String, GpuId> devices;
  private final int offlineFloor;

  /**
   * Creates a reader for one node.
   *
   * @param nodePool the pool's name in the node's ResourceSlice
   * @param devices the GPUs by their devices' names in that slice
   * @param offlineFloor the offline floor of its GPUs, in percent
   */
  Claims(String nodePool, Map<String, GpuId> devices, int offlineFloor) {
    this.nodePool = nodePool;
    this.devices = Map.copyOf(devices);
    this.offlineFloor = offlineFloor;
  }

  /**
   * {@return what is to be held}
   *
   * @param claim the API's object
   * @throws IllegalArgumentException if the claim is not allocated on this node, or requests the
   *     impossible; the message says what was requested
   */
  Holding read(JsonNode claim) {
    JsonNode allocation = claim.path("status").path("allocation").path("devices");
    if (allocation.path("results").isEmpty()) {
      throw new IllegalArgumentException("the claim is not allocated");
    }
    List<Part> parts = new ArrayList<>();
    Set<String> requests = new HashSet<>();
    for (JsonNode result : allocation.path("results")) {
      if (!result.path("driver").asText().equals(Driver.NAME)
          || !result.path("pool").asText().equals(nodePool)) {
        continue; // another driver's or another node's device
      }
      String request = result.path("request").asText();
      if (!requests.add(request)) {
        throw new IllegalArgumentException(
            "a request asks for several virtual GPUs, and a container can be under one: request="
                + request
                + "; give it count: 1");
      }
      parts.add(part(claim, result, request, allocation.path("config")));
    }
    if (parts.isEmpty()) {
      throw new IllegalArgumentException(
          "nothing of the claim is allocated from " + Driver.NAME + " pool " + nodePool);
    }
    JsonNode metadata = claim.path("metadata");
    return new Holding(
        metadata.path("uid").asText(),
        Stage.TAKING,
        new Owner(
            metadata.path("namespace").asText(),
            metadata.path("name").asText(),
            Optional.empty(),
            Optional.empty()),
        parts);
  }

  private Part part(JsonNode claim, JsonNode result, String request, JsonNode configs) {
    String device = result.path("device").asText();
    GpuId gpu = devices.get(device);
    if (gpu == null) {
      throw new IllegalArgumentException(
          "no such device on this node: " + device + "; there are " + devices.keySet());
    }
    ShareParameters parameters = parameters(configs, request);
    if (parameters.offlineFloor() > offlineFloor) {
      throw new IllegalArgumentException(
          "offlineFloorPercent="
              + parameters.offlineFloor()
              + " was asked, and this node leaves offline tenants "
              + offlineFloor
              + " % (--offline-floor)");
    }
    JsonNode capacity = result.path("consumedCapacity");
    boolean isBestEffort = parameters.policy() == SharePolicy.BEST_EFFORT;
    Terms terms =
        new Terms(
            gpu,
            isBestEffort ? OptionalInt.empty() : OptionalInt.of(share(capacity)),
            MemorySize.ofBytes(amount(capacity, Driver.MEMORY).longValueExact()),
            parameters.policy(),
            parameters.preemptionClass(),
            parameters.isolation(),
            parameters.compute());
    String shareId = result.path("shareID").asText("");
    // A request's name may contain a slash: REQUEST/SUBREQUEST.
    String name = claim.path("metadata").path("uid").asText() + "-" + request.replace('/', '.');
    return new Part(
        name,
        request,
        device,
        shareId.isEmpty() ? Optional.empty() : Optional.of(shareId),
        terms,
        Optional.empty());
  }

  private static int share(JsonNode capacity) {
    BigDecimal share = amount(capacity, Driver.SHARE);
    try {
      int percent = share.intValueExact();
      if (percent >= 1 && percent <= 100) {
        return percent;
      }
    } catch (ArithmeticException e) {
      // Reported below.
    }
    throw new IllegalArgumentException(
        "a share is not a whole number of percent, 1 to 100: share=" + share.toPlainString());
  }

  private static BigDecimal amount(JsonNode capacity, String name) {
    JsonNode value = capacity.path(name);
    if (value.isMissingNode()) {
      value = capacity.path(Driver.NAME + "/" + name);
    }
    if (value.isMissingNode()) {
      throw new IllegalArgumentException(
          "the allocation does not say how much "
              + name
              + " it takes (consumedCapacity); the cluster needs DRAConsumableCapacity");
    }
    return Quantity.getAmountInBytes(new Quantity(value.asText()));
  }

  /** The parameters of the class, overridden by those of the claim. */
  private static ShareParameters parameters(JsonNode configs, String request) {
    ShareParameters parameters = ShareParameters.DEFAULTS;
    for (String source : List.of("FromClass", "FromClaim")) {
      for (JsonNode config : configs) {
        JsonNode opaque = config.path("opaque");
        if (config.path("source").asText().equals(source)
            && opaque.path("driver").asText().equals(Driver.NAME)
            && concerns(config.path("requests"), request)) {
          parameters = parameters.with(opaque.path("parameters"));
        }
      }
    }
    return parameters;
  }

  /**
   * A configuration that names no request applies to all; one that names a request applies to its
   * subrequests too.
   */
  private static boolean concerns(JsonNode requests, String request) {
    if (requests.isEmpty()) {
      return true;
    }
    for (JsonNode each : requests) {
      if (each.asText().equals(request) || request.startsWith(each.asText() + "/")) {
        return true;
      }
    }
    return false;
  }
}
