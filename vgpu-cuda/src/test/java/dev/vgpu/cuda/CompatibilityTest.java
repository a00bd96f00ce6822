package dev.vgpu.cuda;

import static org.assertj.core.api.Assertions.assertThat;

import dev.vgpu.spi.GpuDriver;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.ServiceLoader;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/**
 * Each way for a program to reach the driver and NVML, and to live and end as a process. The cases
 * are those of {@code compat.c}.
 */
@Timeout(value = 240, unit = TimeUnit.SECONDS) // compiles, and starts about sixty processes
class CompatibilityTest {
  private static final Path TESTS = Path.of("src/test/c");
  private static final Path LIBRARIES = Path.of("target/classes/META-INF/native/linux-x86_64");

  @TempDir Path work;

  @Test
  void everyCaseIsHeld() throws Exception {
    String output =
        compat("plain", LIBRARIES.resolve("libvgpu_nvml.so").toAbsolutePath().toString());
    assertThat(output).contains("ok   direct link", "ok   nvml: refusals");
  }

  /** Only the NVML cases: the hook has its own sanitizer test. */
  @ParameterizedTest
  @ValueSource(strings = {"asan", "tsan"})
  void sanitizersFindNothing(String kind) throws Exception {
    String output =
        compat(
            kind,
            "",
            "nvml: direct link",
            "nvml: refused without a lease",
            "nvml: open without a lease",
            "nvml: visible devices",
            "nvml: nothing of other tenants",
            "nvml: accounting of others",
            "nvml: MIG devices",
            "nvml: topology, newer functions",
            "nvml: many threads",
            "nvml: refusals");
    assertThat(output).contains("ok   nvml: refusals").doesNotContain("WARNING: ", "ERROR: ");
  }

  private String compat(String kind, String nvml, String... cases) throws Exception {
    GpuDriver driver = ServiceLoader.load(GpuDriver.class).findFirst().orElseThrow();
    List<String> arguments = new ArrayList<>();
    arguments.addAll(List.of(TESTS.resolve("run_compat.sh").toString(), kind, work.toString()));
    arguments.add(LIBRARIES.resolve("libvgpu_cuda.so").toAbsolutePath().toString());
    arguments.addAll(
        List.of(nvml, driver.cudaLibrary().toString(), driver.nvmlLibrary().toString()));
    arguments.addAll(List.of(cases));
    String output = succeed(arguments.toArray(String[]::new));
    assertThat(output).doesNotContain("FAIL");
    return output;
  }

  @Test
  void nvmlExportsAreThoseOfTheList() throws Exception {
    succeed(
        TESTS.resolve("check.sh").toString(),
        "nvml-exports",
        LIBRARIES.resolve("libvgpu_nvml.so").toString());
  }

  @ParameterizedTest
  @ValueSource(strings = {"libvgpu_cuda.so", "libvgpu_nvml.so"})
  void librariesLoadWithAnOldGlibc(String library) throws Exception {
    succeed(TESTS.resolve("check.sh").toString(), "glibc", LIBRARIES.resolve(library).toString());
  }

  private String succeed(String... arguments) throws IOException, InterruptedException {
    List<String> command = new ArrayList<>(List.of("sh"));
    command.addAll(List.of(arguments));
    Path output = work.resolve("output.txt");
    ProcessBuilder builder = new ProcessBuilder(command);
    builder.environment().keySet().removeIf(name -> name.equals("LD_PRELOAD"));
    builder.environment().keySet().removeIf(name -> name.startsWith("VGPU_"));
    builder.redirectErrorStream(true).redirectOutput(output.toFile());
    Process process = builder.start();
    boolean ended = process.waitFor(220, TimeUnit.SECONDS);
    if (!ended) {
      process.destroyForcibly();
    }
    String text = Files.readString(output, StandardCharsets.UTF_8);
    assertThat(ended && process.exitValue() == 0).as("%s%n%s", command, text).isTrue();
    return text;
  }
}
