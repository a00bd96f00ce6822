package dev.vgpu.k8s.node.holding;

import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.JsonNodeFactory;
import com.fasterxml.jackson.databind.node.ObjectNode;
import dev.vgpu.ContainerSpec;
import java.util.List;
import java.util.Map;

/**
 * A file of the Container Device Interface (CDI): what a container runtime adds to a container that
 * requests one of its devices. Its specification is at
 * https://github.com/cncf-tags/container-device-interface/blob/main/SPEC.md
 */
final class CdiText {
  static final String KIND = "vgpu.dev/gpu";
  private static final String VERSION = "0.6.0";

  private CdiText() {}

  static String of(Map<String, ContainerSpec> devices) {
    ObjectNode file = JsonNodeFactory.instance.objectNode();
    file.put("cdiVersion", VERSION).put("kind", KIND);
    ArrayNode rows = file.putArray("devices");
    devices.forEach((name, spec) -> edits(rows.addObject().put("name", name), spec));
    return file.toPrettyString() + "\n";
  }

  private static void edits(ObjectNode device, ContainerSpec spec) {
    ObjectNode edits = device.putObject("containerEdits");
    ArrayNode variables = edits.putArray("env");
    spec.environment().forEach((name, value) -> variables.add(name + "=" + value));
    if (!spec.devices().isEmpty()) {
      ArrayNode nodes = edits.putArray("deviceNodes");
      spec.devices().forEach(path -> nodes.addObject().put("path", path.toString()));
    }
    ArrayNode mounts = edits.putArray("mounts");
    for (ContainerSpec.Mount mount : spec.mounts()) {
      ObjectNode row = mounts.addObject();
      row.put("hostPath", mount.hostPath().toString());
      row.put("containerPath", mount.containerPath().toString());
      boolean isWritable = mount.access() == ContainerSpec.Access.READ_WRITE;
      List.of(isWritable ? "rw" : "ro", "nosuid", "nodev", "rbind", "rprivate")
          .forEach(row.putArray("options")::add);
    }
  }
}
