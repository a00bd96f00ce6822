package dev.vgpu.cli;

import static java.nio.charset.StandardCharsets.UTF_8;
import static org.assertj.core.api.Assertions.assertThat;

import java.io.BufferedReader;
import java.io.IOException;
import java.net.ServerSocket;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.concurrent.TimeUnit;
import java.util.regex.MatchResult;
import java.util.regex.Pattern;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.Arguments;
import org.junit.jupiter.params.provider.MethodSource;

/**
 * Runs the commands that the site's pages show, over two emulated GPUs: those of a checkout, and
 * those of an installed vgpu with this checkout's. Programs that would run for some seconds run for
 * one, and a program of a sample stands in for the reader's.
 */
class PageCommandsIT {
  private static final Path HOME = Path.of(System.getProperty("vgpu.home", ".."));
  private static final long TIMEOUT_SECONDS = 60;
  private static final Pattern SHELL = Pattern.compile("(?ms)^```sh\n(.*?)^```$");

  // Covered elsewhere: the demo, MIG and suspending have their own tests (MigIT, SuspendIT),
  // benchmarks measure, and integration/debian-package.sh tests package and the installed examples.
  // Install writes to the local repository, top without a count runs until Ctrl-C, and podman is
  // not on every machine.
  private static final Pattern ELSEWHERE =
      Pattern.compile(
          "\\./vgpu (demo|bench|install|package|mig|run --require faults|top$|top --json|suspend"
              + "|resume|simulate).*|.*(/usr/lib/vgpu|podman).*");

  private static final Pattern SERVER = Pattern.compile("\\./vgpu serve.*");
  private static final String READERS = "python3 \\S+\\.py|tritonserver .*";
  private static final String SPIN =
      "samples/cuda-programs/target/programs/spin --us 500 --seconds 1";

  @TempDir Path directory;

  static Stream<Arguments> commands() throws IOException {
    return lines()
        .filter(line -> !SERVER.matcher(line).matches())
        .map(line -> Arguments.of(line, exitCodes(line)));
  }

  static Stream<String> servers() throws IOException {
    return lines().filter(line -> SERVER.matcher(line).matches());
  }

  private static Stream<String> lines() throws IOException {
    try (Stream<Path> files = Files.walk(HOME.resolve("site"), 2)) {
      return files
          .filter(file -> file.toString().endsWith(".md"))
          .filter(file -> !file.toString().contains("node_modules"))
          .sorted()
          .toList()
          .stream()
          .flatMap(PageCommandsIT::commandsOf)
          .distinct();
    }
  }

  private static Stream<String> commandsOf(Path page) {
    String text;
    try {
      text = Files.readString(page, UTF_8);
    } catch (IOException e) {
      throw new AssertionError(e);
    }
    return SHELL
        .matcher(text)
        .results()
        .map(MatchResult::group)
        .flatMap(block -> block.replaceAll("\\\\\n\\s*", "").lines())
        .filter(line -> line.startsWith("./vgpu") || line.startsWith("vgpu "))
        .map(line -> line.replaceFirst("^vgpu ", "./vgpu ").replaceFirst(READERS, SPIN))
        .filter(line -> !ELSEWHERE.matcher(line).matches());
  }

  /** The exit codes of a command according to the pages. */
  private static List<Integer> exitCodes(String command) {
    if (command.startsWith("./vgpu doctor")) {
      return List.of(0, 1);
    }
    return command.contains("faults:isolated") ? List.of(75) : List.of(0);
  }

  @Test
  void pagesHaveCommands() throws IOException {
    assertThat(commands().map(each -> (String) each.get()[0]))
        .anyMatch(line -> line.startsWith("./vgpu run"))
        .anyMatch(line -> line.startsWith("./vgpu ls"))
        .anyMatch(line -> line.startsWith("./vgpu cdi"))
        .anyMatch(line -> line.startsWith("./vgpu usage"))
        .anyMatch(line -> line.endsWith(SPIN));
    assertThat(servers()).isNotEmpty();
  }

  @ParameterizedTest
  @MethodSource("commands")
  void commandOfAPageEndsAsThePageSays(String command, List<Integer> exitCodes) throws Exception {
    Path output = directory.resolve("output");
    Process process = start(command).redirectOutput(output.toFile()).start();
    try {
      assertThat(process.waitFor(TIMEOUT_SECONDS, TimeUnit.SECONDS)).as(command).isTrue();
      assertThat(process.exitValue())
          .as("%s%n%s", command, Files.readString(output, UTF_8))
          .isIn(exitCodes);
    } finally {
      process.descendants().forEach(ProcessHandle::destroyForcibly);
      process.destroyForcibly();
    }
  }

  @ParameterizedTest
  @MethodSource("servers")
  @Timeout(TIMEOUT_SECONDS)
  void serverOfAPageServesUntilItIsTerminated(String command) throws Exception {
    Process process = start("exec " + command).start();
    try (BufferedReader output = process.inputReader(UTF_8)) {
      assertThat(output.readLine()).as(command).isNotNull();
      process.destroy();
      assertThat(process.waitFor(TIMEOUT_SECONDS, TimeUnit.SECONDS)).as(command).isTrue();
      assertThat(process.exitValue()).as(command).isZero();
    } finally {
      process.destroyForcibly();
    }
  }

  /** The command, which writes nothing outside this test's directory. */
  private ProcessBuilder start(String command) throws IOException {
    String line =
        command
            .replaceAll("--seconds \\d+", "--seconds 1")
            .replaceAll("--metrics \\d+", "--metrics " + freePort())
            .replace("/tmp/", directory + "/")
            .replace(" > ", " > " + directory + "/");
    ProcessBuilder builder = new ProcessBuilder("sh", "-c", line).directory(HOME.toFile());
    builder.environment().keySet().removeIf(name -> name.startsWith("VGPU_"));
    builder.environment().remove("LD_PRELOAD");
    builder.environment().put("JAVA_HOME", System.getProperty("java.home"));
    builder.environment().put("VGPU_RUN_DIR", directory.resolve("run").toString());
    builder.environment().put("VGPU_EMULATOR", "devices=2,memory=64GiB");
    // The script builds nothing, so that the test runs what is already built.
    builder.environment().put("VGPU_BUILDING", "1");
    return builder.redirectErrorStream(true);
  }

  private static int freePort() throws IOException {
    try (ServerSocket socket = new ServerSocket(0)) {
      return socket.getLocalPort();
    }
  }
}
