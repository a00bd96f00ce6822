package dev.vgpu.bench.gpucheck;

import dev.vgpu.bench.gpucheck.machine.Place;
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

  static int run(CheckOptions options) throws IOException, InterruptedException {
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
        options.packFile == null ? home.resolve(DEFAULT_FILE) : options.packFile.toAbsolutePath();
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
