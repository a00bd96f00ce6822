package dev.vgpu.k8s.node.holding;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.JsonNodeFactory;
import com.fasterxml.jackson.databind.node.ObjectNode;
import dev.vgpu.k8s.node.holding.Holding.Owner;
import dev.vgpu.k8s.node.holding.Holding.Part;
import dev.vgpu.k8s.node.holding.Holding.PoolDevice;
import dev.vgpu.k8s.node.holding.Holding.Stage;
import dev.vgpu.request.Capabilities;
import dev.vgpu.request.GpuId;
import dev.vgpu.request.MemorySize;
import dev.vgpu.request.PreemptionClass;
import dev.vgpu.request.SharePolicy;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import java.util.OptionalInt;

/** The JSON form of a holding on disk. */
final class HoldingText {
  private static final int VERSION = 1;

  private HoldingText() {}

  static JsonNode of(Holding holding) {
    ObjectNode node = JsonNodeFactory.instance.objectNode();
    node.put("version", VERSION).put("key", holding.key()).put("stage", holding.stage().name());
    ObjectNode owner = node.putObject("owner");
    owner.put("namespace", holding.owner().namespace()).put("name", holding.owner().name());
    holding.owner().podUid().ifPresent(uid -> owner.put("podUid", uid));
    holding.owner().container().ifPresent(name -> owner.put("container", name));
    for (Part part : holding.parts()) {
      ObjectNode row = node.withArray("parts").addObject();
      row.put("device", part.device()).put("request", part.request());
      for (PoolDevice device : part.devices()) {
        ObjectNode one =
            part.devices().size() == 1 ? row : row.withArray("poolDevices").addObject();
        one.put("poolDevice", device.name());
        device.shareId().ifPresent(id -> one.put("shareId", id));
      }
      part.lease().ifPresent(id -> row.put("lease", id));
      Terms terms = part.terms();
      if (terms.gpus().size() == 1) {
        row.put("gpu", terms.gpus().get(0).value());
      } else {
        terms.gpus().forEach(gpu -> row.withArray("gpus").add(gpu.value()));
      }
      terms.part().ifPresent(name -> row.put("part", name));
      row.put("memoryBytes", terms.memory().bytes());
      terms.sharePercent().ifPresent(share -> row.put("sharePercent", share));
      row.put("policy", terms.policy().name()).put("class", terms.preemptionClass().name());
      row.put("isolation", terms.isolation().name()).put("compute", terms.compute().name());
    }
    return node;
  }

  /** Parses what {@link #of} writes. Throws {@link IllegalArgumentException} for anything else. */
  static Holding read(JsonNode node) {
    if (node.path("version").asInt() != VERSION) {
      throw new IllegalArgumentException(
          "another version wrote it: version=" + node.path("version") + ", expected " + VERSION);
    }
    JsonNode owner = node.path("owner");
    List<Part> parts = new ArrayList<>();
    for (JsonNode row : node.path("parts")) {
      parts.add(
          new Part(
              text(row, "device"),
              text(row, "request"),
              devices(row),
              terms(row),
              optional(row, "lease")));
    }
    return new Holding(
        text(node, "key"),
        Stage.valueOf(text(node, "stage")),
        new Owner(
            text(owner, "namespace"),
            text(owner, "name"),
            optional(owner, "podUid"),
            optional(owner, "container")),
        parts);
  }

  /** A part on one GPU has no list, so that earlier versions can read it. */
  private static List<PoolDevice> devices(JsonNode row) {
    List<PoolDevice> devices = new ArrayList<>();
    for (JsonNode one : row.has("poolDevices") ? row.path("poolDevices") : List.of(row)) {
      devices.add(new PoolDevice(text(one, "poolDevice"), optional(one, "shareId")));
    }
    return devices;
  }

  private static List<GpuId> gpus(JsonNode row) {
    List<GpuId> gpus = new ArrayList<>();
    row.path("gpus").forEach(gpu -> gpus.add(new GpuId(gpu.asText())));
    return gpus.isEmpty() ? List.of(new GpuId(text(row, "gpu"))) : gpus;
  }

  private static Terms terms(JsonNode row) {
    return new Terms(
        gpus(row),
        optional(row, "part"),
        row.has("sharePercent")
            ? OptionalInt.of(row.path("sharePercent").asInt())
            : OptionalInt.empty(),
        MemorySize.ofBytes(row.path("memoryBytes").asLong()),
        SharePolicy.valueOf(text(row, "policy")),
        PreemptionClass.valueOf(text(row, "class")),
        Capabilities.FaultIsolation.valueOf(text(row, "isolation")),
        Capabilities.Compute.valueOf(text(row, "compute")));
  }

  private static String text(JsonNode node, String name) {
    return optional(node, name)
        .orElseThrow(() -> new IllegalArgumentException("it lacks the text " + name));
  }

  private static Optional<String> optional(JsonNode node, String name) {
    JsonNode value = node.path(name);
    return value.isTextual() ? Optional.of(value.asText()) : Optional.empty();
  }
}
