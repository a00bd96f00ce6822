package dev.vgpu.bench.command;

import static java.nio.charset.StandardCharsets.UTF_8;
import static org.assertj.core.api.Assertions.assertThat;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import dev.vgpu.spi.GpuDriver;
import java.io.File;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.ServiceLoader;
import java.util.concurrent.TimeUnit;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** {@code gpu-check --pack}: the bundle, run as on a machine without Java. */
class GpuCheckBundleIT {
  private static final Path HOME =
      Path.of(System.getProperty("vgpu.home", "..")).toAbsolutePath().normalize();
  private static final long TIMEOUT_SECONDS = 300;
  private static final long MOST_BYTES = 60L << 20;

  @TempDir private Path directory;

  private String run(boolean isBare, Map<String, String> environment, List<String> command)
      throws IOException, InterruptedException {
    Path out = directory.resolve("out");
    ProcessBuilder builder = new ProcessBuilder(command).directory(directory.toFile());
    if (isBare) {
      builder.environment().clear();
    }
    builder.environment().putAll(environment);
    Process process = builder.redirectErrorStream(true).redirectOutput(out.toFile()).start();
    boolean ended = process.waitFor(TIMEOUT_SECONDS, TimeUnit.SECONDS);
    process.destroyForcibly().waitFor();
    String said = Files.readString(out, UTF_8);
    assertThat(ended).as(said).isTrue();
    assertThat(process.exitValue()).as(said).isZero();
    return said;
  }

  /** The jars of the modules that this module's tests otherwise load from directories. */
  private static String jars() throws IOException {
    try (Stream<Path> own = Files.list(HOME.resolve("vgpu-bench/target"))) {
      List<String> jars =
          own.map(Path::toString)
              .filter(name -> name.matches(".*/vgpu-bench-[0-9.]+(-SNAPSHOT)?\\.jar"))
              .toList();
      assertThat(jars).hasSize(1);
      return jars.get(0)
          + Arrays.stream(System.getProperty("java.class.path", "").split(File.pathSeparator, -1))
              .filter(entry -> entry.endsWith(".jar"))
              .map(entry -> File.pathSeparator + entry)
              .collect(Collectors.joining());
    }
  }

  @Test
  void itIsSmallAndRunsWhereNothingIsInstalled() throws Exception {
    Path file = directory.resolve("bundle.tar.gz");
    run(
        false,
        Map.of(),
        List.of(HOME.resolve("build/gpu-check/pack.sh").toString(), jars(), file.toString()));
    assertThat(Files.size(file)).isBetween(1L << 20, MOST_BYTES);
    run(false, Map.of(), List.of("tar", "-xzf", file.toString()));
    Path bundle = directory.resolve("vgpu-gpu-check");
    Path tools = Files.createDirectory(directory.resolve("tools"));
    for (String name : List.of("sh", "dirname")) {
      String found = run(false, Map.of(), List.of("sh", "-c", "command -v " + name)).strip();
      Files.createSymbolicLink(tools.resolve(name), Path.of(found).toRealPath());
    }
    GpuDriver driver = ServiceLoader.load(GpuDriver.class).findFirst().orElseThrow();
    Path libraries = Files.createDirectory(directory.resolve("driver"));
    for (Path library : List.of(driver.cudaLibrary(), driver.nvmlLibrary())) {
      Files.copy(library, libraries.resolve(library.getFileName()));
    }
    Path results = directory.resolve("results");
    String said =
        run(
            true,
            Map.of("PATH", tools.toString()),
            List.of(
                bundle.resolve("gpu-check.sh").toString(),
                "--quick",
                "--only",
                "machine,nvml,mig,programs",
                "--driver",
                libraries.toString(),
                "--out",
                results.toString()));
    assertThat(said).contains("there is no nvidia-smi in PATH");
    try (Stream<Path> all = Files.list(results)) {
      Path json = all.filter(each -> each.toString().endsWith(".json")).findFirst().orElseThrow();
      JsonNode steps = new ObjectMapper().readTree(json.toFile()).path("steps");
      assertThat(steps.findValuesAsText("state")).containsExactly("ok", "ok", "skipped", "ok");
    }
  }
}
