package dev.vgpu.cuda;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.io.TempDir;

/** Runs the scripts that build and run the hook's C tests. They need a C compiler and no GPU. */
abstract class NativeTests {
  static final Path TESTS = Path.of("src/test/c");
  static final Path LIBRARY =
      Path.of("target/classes/META-INF/native/linux-x86_64/libvgpu_cuda.so");

  /** Where the hook's sources are compiled for each sanitizer, once for all tests. */
  private static final Path OBJECTS = Path.of("target/native-tests");

  /** From this build, if it exists; else the scripts build one. */
  static final Path EMULATOR =
      Path.of("../vgpu-emulator/target/classes/META-INF/native/linux-x86_64/libcuda.so.1");

  @TempDir Path work;

  record Result(int status, String output) {}

  /** How many C tests run at a time, where all of them do. */
  int lanes() {
    return 1;
  }

  final void runTests(String kind, List<String> names) throws Exception {
    List<String> command = new ArrayList<>();
    command.addAll(List.of("sh", TESTS.resolve("run.sh").toString(), kind, work.toString()));
    command.add(LIBRARY.toAbsolutePath().toString());
    command.addAll(names);
    String output = succeed(command.toArray(String[]::new));
    assertThat(output).contains("ok   quota-fill").doesNotContain("FAIL", "WARNING: ", "ERROR: ");
  }

  final String succeed(String... command) throws IOException, InterruptedException {
    Result result = run(command);
    assertThat(result.status()).as("%s%n%s", String.join(" ", command), result.output()).isZero();
    return result.output();
  }

  final Result run(String... command) throws IOException, InterruptedException {
    Path output = work.resolve("output.txt");
    ProcessBuilder builder = new ProcessBuilder(command);
    builder.environment().put("VGPU_TEST_SCALE", "25");
    builder.environment().put("VGPU_TEST_LANES", Integer.toString(lanes()));
    builder.environment().put("VGPU_HOOK_OBJECTS", OBJECTS.toAbsolutePath().toString());
    if (Files.exists(EMULATOR)) {
      builder.environment().put("EMULATOR", EMULATOR.toAbsolutePath().toString());
    }
    builder.environment().keySet().removeIf(name -> name.equals("LD_PRELOAD"));
    builder.redirectErrorStream(true).redirectOutput(output.toFile());
    Process process = builder.start();
    boolean ended = process.waitFor(360, TimeUnit.SECONDS);
    if (!ended) {
      process.destroyForcibly();
    }
    String text = new String(Files.readAllBytes(output), StandardCharsets.UTF_8);
    return new Result(ended ? process.exitValue() : -1, text);
  }
}
