package dev.vgpu.bench.gpucheck;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Objects;
import java.util.Set;

/** {@code vgpu gpu-check --pack}, which works only in a checkout. */
final class Pack {
  private static final String DEFAULT_FILE = "target/vgpu-gpu-check.tar.gz";

  private Pack() {}

  static int run(List<String> arguments) throws IOException, InterruptedException {
    if (arguments.size() > 1) {
      throw new IllegalArgumentException("what is '" + arguments.get(1) + "'?");
    }
    Path home =
        Path.of(Objects.requireNonNullElse(System.getenv("VGPU_HOME"), ".")).toAbsolutePath();
    Path script = home.resolve("build/gpu-check/pack.sh");
    if (!Files.exists(script)) {
      throw new IllegalStateException(
          "--pack needs a source checkout: there is no "
              + script
              + "; run ./vgpu gpu-check --pack");
    }
    Path file =
        arguments.isEmpty()
            ? home.resolve(DEFAULT_FILE)
            : Path.of(arguments.get(0)).toAbsolutePath();
    Set<String> jars = new LinkedHashSet<>();
    for (String property : List.of("java.class.path", Place.COMMAND_CLASS_PATH)) {
      jars.addAll(Arrays.asList(System.getProperty(property, "").split(":", -1)));
    }
    return new ProcessBuilder(
            script.toString(), String.join(":", jars), file.normalize().toString())
        .inheritIO()
        .start()
        .waitFor();
  }
}
