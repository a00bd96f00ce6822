package dev.vgpu.cli.container;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.SerializationFeature;
import dev.vgpu.ContainerSpec;
import dev.vgpu.cdi.CdiContent;
import java.io.IOException;
import java.util.Map;

/** A file of the Container Device Interface (CDI) with one device. */
public final class CdiFile {
  private static final ObjectMapper JSON =
      new ObjectMapper().enable(SerializationFeature.INDENT_OUTPUT);

  private final String id;
  private final JsonNode content;

  private CdiFile(String id, JsonNode content) {
    this.id = id;
    this.content = content;
  }

  /**
   * {@return the file for one virtual GPU}
   *
   * @param id the virtual GPU's name, which becomes the device's name
   * @param spec what a container needs
   */
  public static CdiFile of(String id, ContainerSpec spec) {
    return new CdiFile(id, JSON.valueToTree(CdiContent.of(Map.of(id, spec))));
  }

  /** {@return the device's qualified name for runtimes, for example {@code vgpu.dev/gpu=a-1}} */
  public String device() {
    return CdiContent.KIND + "=" + id;
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
