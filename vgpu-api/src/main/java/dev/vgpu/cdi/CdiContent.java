package dev.vgpu.cdi;

import dev.vgpu.ContainerSpec;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

/**
 * The content of a file of the Container Device Interface (CDI): what a container runtime adds to a
 * container that requests one of the file's devices. Follows version {@value #VERSION} of the
 * specification at https://github.com/cncf-tags/container-device-interface/blob/main/SPEC.md
 */
public final class CdiContent {
  /** The version of the CDI specification. */
  public static final String VERSION = "0.6.0";

  /** The CDI kind, vendor and class, of a virtual GPU. */
  public static final String KIND = "vgpu.dev/gpu";

  private CdiContent() {}

  /**
   * {@return the content, a JSON object: maps, lists and strings, in the order of the file}
   *
   * @param devices what a container needs, by the device's name
   */
  public static Map<String, Object> of(Map<String, ContainerSpec> devices) {
    List<Object> rows = new ArrayList<>();
    devices.forEach(
        (name, spec) -> rows.add(object("name", name, "containerEdits", containerEdits(spec))));
    return object("cdiVersion", VERSION, "kind", KIND, "devices", rows);
  }

  private static Map<String, Object> containerEdits(ContainerSpec spec) {
    List<String> variables = new ArrayList<>();
    spec.environment().forEach((name, value) -> variables.add(name + "=" + value));
    Map<String, Object> edits = object("env", variables);
    if (!spec.devices().isEmpty()) {
      edits.put("deviceNodes", spec.devices().stream().map(CdiContent::deviceNode).toList());
    }
    edits.put("mounts", spec.mounts().stream().map(CdiContent::mount).toList());
    return edits;
  }

  private static Map<String, Object> deviceNode(Path path) {
    return object("path", path.toString());
  }

  private static Map<String, Object> mount(ContainerSpec.Mount mount) {
    boolean isWritable = mount.access() == ContainerSpec.Access.READ_WRITE;
    return object(
        "hostPath", mount.hostPath().toString(),
        "containerPath", mount.containerPath().toString(),
        "options", List.of(isWritable ? "rw" : "ro", "nosuid", "nodev", "rbind", "rprivate"));
  }

  private static Map<String, Object> object(Object... namesAndValues) {
    Map<String, Object> object = new LinkedHashMap<>();
    for (int i = 0; i < namesAndValues.length; i += 2) {
      object.put((String) namesAndValues[i], namesAndValues[i + 1]);
    }
    return object;
  }
}
