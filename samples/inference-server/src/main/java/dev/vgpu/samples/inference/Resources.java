package dev.vgpu.samples.inference;

import java.io.FileNotFoundException;
import java.io.IOException;
import java.io.InputStream;
import java.nio.charset.StandardCharsets;
import java.util.List;
import org.jspecify.annotations.Nullable;

/**
 * Files on the class path: the model and the tokenizer from their Maven artifact, and the corpus.
 */
final class Resources {
  private Resources() {}

  /** {@return whether the class path has the file} */
  static boolean exists(String path) {
    return Resources.class.getResource(path) != null;
  }

  /** {@return the file, to be closed} */
  static InputStream open(String path) throws IOException {
    @Nullable InputStream in = Resources.class.getResourceAsStream(path);
    if (in == null) {
      throw new FileNotFoundException("not on the class path: " + path);
    }
    return in;
  }

  /** {@return the file's bytes} */
  static byte[] bytes(String path) throws IOException {
    try (InputStream in = open(path)) {
      return in.readAllBytes();
    }
  }

  /** {@return the file's lines, read as UTF-8} */
  static List<String> lines(String path) throws IOException {
    return new String(bytes(path), StandardCharsets.UTF_8).lines().toList();
  }
}
