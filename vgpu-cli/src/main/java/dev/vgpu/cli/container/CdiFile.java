package dev.vgpu.cli.container;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.SerializationFeature;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.JsonNodeFactory;
import com.fasterxml.jackson.databind.node.ObjectNode;
import dev.vgpu.ContainerSpec;
import java.io.IOException;
import java.util.List;

/**
 * A file of the Container Device Interface (CDI). It tells a container runtime what to add to a
 * container that requests one of its devices. Follows version {@value #VERSION} of the
 * specification.
 */
public final class CdiFile {
  /** The version of the CDI specification. */
  public static final String VERSION = "0.6.0";

  /** The CDI kind, vendor and class, of a virtual GPU. */
  public static final String KIND = "vgpu.dev/gpu";

  private static final ObjectMapper JSON =
      new ObjectMapper().enable(SerializationFeature.INDENT_OUTPUT);

  private final ObjectNode content;

  private CdiFile(ObjectNode content) {
    this.content = content;
  }

  /**
   * {@return the file for one virtual GPU}
   *
   * @param id the virtual GPU's name, which becomes the device's name
   * @param spec what a container needs
   */
  public static CdiFile of(String id, ContainerSpec spec) {
    ObjectNode content = JsonNodeFactory.instance.objectNode();
    content.put("cdiVersion", VERSION).put("kind", KIND);
    ObjectNode device = content.putArray("devices").addObject();
    device.put("name", id);
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
    return new CdiFile(content);
  }

  /** {@return the device's qualified name for runtimes, for example {@code vgpu.dev/gpu=a-1}} */
  public String device() {
    return KIND + "=" + content.path("devices").path(0).path("name").asText();
  }

  /**
   * {@return the file's text}
   *
   * @throws IOException never
   */
  public String text() throws IOException {
    return JSON.writeValueAsString(content) + "\n";
  }

  /** {@return the file's content} */
  public JsonNode content() {
    return content;
  }
}
