package dev.vgpu.samples.cuda;

import static java.nio.charset.StandardCharsets.UTF_8;
import static org.assertj.core.api.Assertions.assertThat;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;

/** Tests what the C programs do before they need a driver. */
class ProgramsTest {
  private static final Path PROGRAMS = Path.of("target", "programs").toAbsolutePath();
  // With it, even programs that are linked with the driver can start.
  private static final Path STUB = PROGRAMS.resolve("build");
  private static final Path PTXAS = Path.of("/usr/local/cuda/bin/ptxas");

  @TempDir private Path directory;

  /** How a program ended. */
  private record Ended(int exitCode, String output) {}

  @ParameterizedTest
  @ValueSource(strings = {"spin", "hoard", "sgemm", "burst"})
  void helpIsOnStandardOutput(String program) throws Exception {
    Ended ended = run(program, "--help");
    assertThat(ended.exitCode()).isZero();
    assertThat(ended.output()).startsWith("Usage: " + program).contains("--device", "Exit codes:");
  }

  @Test
  void smiSaysThatThereIsNoNvml() throws Exception {
    assertThat(run("smi-linked").output()).contains("nvmlInit_v2: ", "(12)");
    assertThat(run("smi", "--colour").exitCode()).isEqualTo(2);
  }

  @ParameterizedTest
  @CsvSource({
    "spin, --us x, not a number",
    "spin, --us -1, not within 0 to 1000000000",
    "spin, --us 1e99, not within",
    "spin, --count 1.5, not a whole number",
    "spin, --grid 0, not within 1 to",
    "spin, --launch quickly, 'kernel,ex,cooperative,graph'",
    "spin, --bind link, not one of",
    "spin, --us, --us needs a value",
    "spin, --json=yes, --json takes no value",
    "spin, now, not known: 'now'",
    "hoard, --chunk 5XB, not a size",
    "hoard, --chunk 0, not within",
    "hoard, --mode steal, 'malloc,async,vmm,managed'",
    "burst, --rate 0, not within",
    "sgemm, --m 0, not within"
  })
  void mistakesInTheArgumentsAreNamed(String program, String arguments, String message)
      throws Exception {
    Ended ended = run(program, arguments.split(" "));
    assertThat(ended.exitCode()).isEqualTo(2);
    assertThat(ended.output()).contains(message, program + " --help");
  }

  @ParameterizedTest
  @ValueSource(strings = {"hoard", "burst"})
  void driverThatFailsIsSaidByTheCall(String program) throws Exception {
    Ended ended = run(program);
    assertThat(ended.exitCode()).isEqualTo(1);
    assertThat(ended.output()).contains(program + ": cuInit: ", "(801)");
  }

  @Test
  void kernelsAreValidPtx() throws Exception {
    assertThat(PROGRAMS.resolve("kernels.ptx"))
        .content()
        .contains(
            ".entry vgpu_null(",
            ".entry vgpu_spin(",
            ".entry vgpu_fill(",
            ".entry vgpu_saxpy(",
            ".entry vgpu_sgemm(");
    if (Files.isExecutable(PTXAS)) {
      Path binary = directory.resolve("kernels.cubin");
      Ended ended =
          run(
              PTXAS,
              "-arch=sm_90",
              PROGRAMS.resolve("kernels.ptx").toString(),
              "-o",
              binary.toString());
      assertThat(ended.exitCode()).as(ended.output()).isZero();
    }
  }

  private Ended run(String program, String... arguments) throws Exception {
    return run(PROGRAMS.resolve(program), arguments);
  }

  private Ended run(Path program, String... arguments) throws IOException, InterruptedException {
    List<String> command = new ArrayList<>(List.of(program.toString()));
    command.addAll(List.of(arguments));
    Path output = directory.resolve("output.txt");
    ProcessBuilder builder =
        new ProcessBuilder(command).redirectErrorStream(true).redirectOutput(output.toFile());
    builder.environment().put("LD_LIBRARY_PATH", STUB.toString());
    int exitCode = builder.start().waitFor();
    return new Ended(exitCode, Files.readString(output, UTF_8));
  }
}
