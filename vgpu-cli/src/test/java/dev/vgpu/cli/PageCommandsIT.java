package dev.vgpu.cli;

import static java.nio.charset.StandardCharsets.UTF_8;
import static org.assertj.core.api.Assertions.assertThat;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.concurrent.TimeUnit;
import java.util.regex.MatchResult;
import java.util.regex.Pattern;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.Arguments;
import org.junit.jupiter.params.provider.MethodSource;

/**
 * Runs the commands that the site's pages show for a checkout, over an emulated GPU of the default
 * size. Programs that would run for some seconds run for one.
 */
class PageCommandsIT {
  private static final Path HOME = Path.of(System.getProperty("vgpu.home", ".."));
  private static final long TIMEOUT_SECONDS = 60;
  private static final Pattern SHELL = Pattern.compile("(?ms)^```sh\n(.*?)^```$");

  // Covered elsewhere: the demo and MIG have their own tests (MigIT), benchmarks measure, and
  // integration/debian-package.sh tests package. Install writes to the local repository, and top
  // without a count runs until Ctrl-C.
  private static final Pattern ELSEWHERE =
      Pattern.compile("\\./vgpu (demo|bench|install|package|mig|run --require faults|top$).*");

  @TempDir Path directory;

  static Stream<Arguments> commands() throws IOException {
    try (Stream<Path> files = Files.walk(HOME.resolve("site"), 2)) {
      return files
          .filter(file -> file.toString().endsWith(".md"))
          .filter(file -> !file.toString().contains("node_modules"))
          .sorted()
          .toList()
          .stream()
          .flatMap(PageCommandsIT::commandsOf)
          .distinct()
          .map(line -> Arguments.of(line, exitCodes(line)));
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
        .filter(line -> line.startsWith("./vgpu"))
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
        .anyMatch(line -> line.startsWith("./vgpu cdi"));
  }

  @ParameterizedTest
  @MethodSource("commands")
  void commandOfAPageEndsAsThePageSays(String command, List<Integer> exitCodes) throws Exception {
    String line =
        command.replaceAll("--seconds \\d+", "--seconds 1").replace("/tmp/", directory + "/");
    Path output = directory.resolve("output");
    ProcessBuilder builder = new ProcessBuilder("sh", "-c", line).directory(HOME.toFile());
    builder.environment().keySet().removeIf(name -> name.startsWith("VGPU_"));
    builder.environment().remove("LD_PRELOAD");
    builder.environment().put("JAVA_HOME", System.getProperty("java.home"));
    builder.environment().put("VGPU_RUN_DIR", directory.resolve("run").toString());
    // The script builds nothing, so that the test runs what is already built.
    builder.environment().put("VGPU_BUILDING", "1");
    Process process = builder.redirectErrorStream(true).redirectOutput(output.toFile()).start();
    try {
      assertThat(process.waitFor(TIMEOUT_SECONDS, TimeUnit.SECONDS)).as(line).isTrue();
      assertThat(process.exitValue())
          .as("%s%n%s", line, Files.readString(output, UTF_8))
          .isIn(exitCodes);
    } finally {
      process.descendants().forEach(ProcessHandle::destroyForcibly);
      process.destroyForcibly();
    }
  }
}
