package dev.vgpu.k8s.node.dra;

import com.fasterxml.jackson.databind.JsonNode;
import dev.vgpu.k8s.names.Driver;
import dev.vgpu.k8s.names.PodRequest;
import dev.vgpu.k8s.node.holding.Holding;
import dev.vgpu.k8s.node.holding.Holding.Owner;
import dev.vgpu.k8s.node.holding.Holding.Part;
import dev.vgpu.k8s.node.holding.Holding.PoolDevice;
import dev.vgpu.k8s.node.holding.Holding.Stage;
import dev.vgpu.k8s.node.holding.Terms;
import dev.vgpu.request.GpuId;
import dev.vgpu.request.GpuPart;
import dev.vgpu.request.MemorySize;
import dev.vgpu.request.SharePolicy;
import io.fabric8.kubernetes.api.model.Quantity;
import java.math.BigDecimal;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.OptionalInt;
import java.util.Set;
import java.util.TreeSet;

/** Reads what an allocated claim requests of this node. Immutable. */
final class Claims {
  private final String nodePool;
  private final Map<String, NodeDevices.Source> devices;
  private final int offlineFloor;

  /**
   * Creates a reader for one node.
   *
   * @param nodePool the pool's name in the node's ResourceSlices
   * @param devices what the devices of that pool are, by their names
   * @param offlineFloor the offline floor of its GPUs, in percent
   */
  Claims(String nodePool, Map<String, NodeDevices.Source> devices, int offlineFloor) {
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
    Map<String, List<JsonNode>> requests = new LinkedHashMap<>();
    Set<String> pools = new TreeSet<>();
    for (JsonNode result : results(claim)) {
      pools.add(result.path("pool").asText());
      if (result.path("pool").asText().equals(nodePool)) {
        requests
            .computeIfAbsent(result.path("request").asText(), name -> new ArrayList<>())
            .add(result);
      }
    }
    List<Part> parts = new ArrayList<>();
    requests.forEach(
        (request, results) -> parts.add(part(claim, results, request, allocation.path("config"))));
    if (parts.isEmpty()) {
      throw new IllegalArgumentException(
          "nothing of the claim is allocated from "
              + Driver.NAME
              + " pool "
              + nodePool
              + (pools.isEmpty() ? "" : ", but from " + pools + ": has the node a new name?"));
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

  /** {@return the devices of this driver that a claim is allocated} */
  private static List<JsonNode> results(JsonNode claim) {
    List<JsonNode> results = new ArrayList<>();
    for (JsonNode result : claim.at("/status/allocation/devices/results")) {
      if (result.path("driver").asText().equals(Driver.NAME)) {
        results.add(result);
      }
    }
    return results;
  }

  /** {@return whether a claim has devices, and none of them from this pool} */
  static boolean isElsewhere(JsonNode claim, String pool) {
    List<JsonNode> results = results(claim);
    return !results.isEmpty()
        && results.stream().noneMatch(result -> result.path("pool").asText().equals(pool));
  }

  /** One virtual GPU, on as many GPUs as the request has devices. */
  private Part part(JsonNode claim, List<JsonNode> results, String request, JsonNode configs) {
    // kube-scheduler counts it nowhere, and the pool would have to count it somewhere.
    if (results.stream().anyMatch(result -> result.path("adminAccess").asBoolean())) {
      throw new IllegalArgumentException(
          "adminAccess takes nothing of a GPU, and a virtual GPU does: request="
              + request
              + "; request without adminAccess, or read the node role's /metrics");
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
    Optional<NodeDevices.Source> divided =
        results.stream().map(this::source).filter(one -> one.part().isPresent()).findFirst();
    Terms terms =
        divided.isPresent()
            ? ofPart(divided.get().gpu(), divided.get().part().orElseThrow(), results, parameters)
            : ofShare(results, request, parameters);
    // A request's name may contain a slash: REQUEST/SUBREQUEST.
    String name = claim.path("metadata").path("uid").asText() + "-" + request.replace('/', '.');
    return new Part(
        name, request, results.stream().map(Claims::device).toList(), terms, Optional.empty());
  }

  private static PoolDevice device(JsonNode result) {
    String shareId = result.path("shareID").asText("");
    return new PoolDevice(
        result.path("device").asText(),
        shareId.isEmpty() ? Optional.empty() : Optional.of(shareId));
  }

  private NodeDevices.Source source(JsonNode result) {
    String device = result.path("device").asText();
    NodeDevices.Source source = devices.get(device);
    if (source == null) {
      throw new IllegalArgumentException(
          "no such device on this node: " + device + "; there are " + devices.keySet());
    }
    return source;
  }

  private Terms ofShare(List<JsonNode> results, String request, ShareParameters parameters) {
    JsonNode capacity = capacity(results, request);
    boolean isBestEffort = parameters.policy() == SharePolicy.BEST_EFFORT;
    return new Terms(
        gpus(results, request),
        Optional.empty(),
        isBestEffort ? OptionalInt.empty() : OptionalInt.of(share(capacity)),
        MemorySize.ofBytes(amount(capacity, Driver.MEMORY).longValueExact()),
        parameters.policy(),
        parameters.preemptionClass(),
        parameters.isolation(),
        parameters.compute());
  }

  /** A part of a GPU is its tenant's alone, and as large as its hardware makes it. */
  private static Terms ofPart(
      GpuId gpu, GpuPart part, List<JsonNode> results, ShareParameters parameters) {
    if (results.size() > 1) {
      throw new IllegalArgumentException(
          "a virtual GPU is on one part of a GPU in MIG mode: part="
              + part.name()
              + " count="
              + results.size());
    }
    if (parameters.policy() != ShareParameters.DEFAULTS.policy()
        || parameters.preemptionClass() != ShareParameters.DEFAULTS.preemptionClass()
        || parameters.offlineFloor() != ShareParameters.DEFAULTS.offlineFloor()) {
      throw new IllegalArgumentException(
          "policy, class and offlineFloorPercent are for shared GPUs, and nobody shares a part of"
              + " a GPU in MIG mode: part="
              + part.name());
    }
    return new Terms(
        List.of(gpu),
        Optional.of(part.name()),
        OptionalInt.empty(),
        part.memory(),
        SharePolicy.BEST_EFFORT,
        parameters.preemptionClass(),
        parameters.isolation(),
        parameters.compute());
  }

  private List<GpuId> gpus(List<JsonNode> results, String request) {
    List<GpuId> gpus = new ArrayList<>();
    for (JsonNode result : results) {
      GpuId gpu = source(result).gpu();
      if (gpus.contains(gpu)) {
        throw new IllegalArgumentException(
            "a request has two parts of one GPU, and a container can be under one virtual GPU:"
                + " request="
                + request
                + " gpu="
                + gpu
                + "; give the claim the constraint distinctAttribute: "
                + Driver.NAME
                + "/uuid, or count: 1");
      }
      gpus.add(gpu);
    }
    if (gpus.size() > PodRequest.MOST_GPUS) {
      throw new IllegalArgumentException(
          "a virtual GPU is on at most "
              + PodRequest.MOST_GPUS
              + " GPUs: request="
              + request
              + " count="
              + gpus.size());
    }
    return gpus;
  }

  /** What the allocation takes of each of its GPUs; of GPUs that differ, it may take different. */
  private static JsonNode capacity(List<JsonNode> results, String request) {
    JsonNode first = results.get(0).path("consumedCapacity");
    for (JsonNode result : results) {
      JsonNode other = result.path("consumedCapacity");
      for (String name : other.isEmpty() ? Set.<String>of() : Set.of(Driver.SHARE, Driver.MEMORY)) {
        if (amount(other, name).compareTo(amount(first, name)) != 0) {
          throw new IllegalArgumentException(
              "a virtual GPU has the same share and quota on all its GPUs: request="
                  + request
                  + " "
                  + name
                  + "="
                  + amount(first, name).toPlainString()
                  + " and "
                  + amount(other, name).toPlainString()
                  + "; name the "
                  + name
                  + " in the request");
        }
      }
    }
    return first;
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
