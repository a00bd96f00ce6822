package dev.vgpu.pages;

import static java.nio.charset.StandardCharsets.UTF_8;
import static org.assertj.core.api.Assertions.assertThat;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.api.parallel.Execution;
import org.junit.jupiter.api.parallel.ExecutionMode;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.MethodSource;

/**
 * Runs the commands that the pages show, over two emulated GPUs, section by section as a reader
 * does: with the files of a checkout in the working directory, and an installed {@code vgpu}. The
 * lines of {@code not-run.txt} are left out, and a line whose tool this machine lacks; it is named
 * on standard error. Two sections run at a time: each has directories, GPUs and ports of its own.
 */
@Execution(ExecutionMode.CONCURRENT)
class PageCommandsIT {
  private static final Path HOME =
      Path.of(System.getProperty("vgpu.home", "../..")).toAbsolutePath().normalize();
  private static final String SPIN = "samples/cuda-programs/target/programs/spin --us 500";
  private static final Set<String> LANGUAGES = Set.of("sh", "java", "xml", "yaml", "ini", "text");

  /** What a section takes as given: the seat's process, and a program. */
  private static final Map<String, List<String>> GIVEN =
      Map.of(
          "site/guides/monitoring.md: Events",
          List.of("vgpu serve"),
          "site/guides/memory.md: Suspend by hand",
          List.of(
              "vgpu run --name train --memory 1GiB -- " + SPIN + " --seconds 60 &",
              "until vgpu ls | grep train; do :; done"));

  /** Programs that not every machine has or permits, and how to see that. */
  private static final Map<String, String> TOOLS =
      Map.of(
          "curl", "command -v curl",
          "unzip", "command -v unzip",
          "jq", "command -v jq",
          "jcmd", "command -v jcmd",
          "promtool", "promtool --version",
          "chrt", "chrt -r 5 true",
          "spin.py", "PATH=${PATH#*:} python3 -c 'import ctypes'");

  @TempDir Path directory;

  static Stream<Pages.Section> sections() throws IOException {
    Set<String> left = NotRun.reasons().keySet();
    return Pages.in(HOME).stream()
        .flatMap(page -> Pages.sections(HOME, page))
        .filter(section -> !left.containsAll(section.lines()));
  }

  @ParameterizedTest
  @MethodSource("sections")
  void commandsOfASectionEndAsThePageSays(Pages.Section section) throws Exception {
    Set<String> left = NotRun.reasons().keySet();
    try (Shell shell = Shell.open(HOME, directory)) {
      Files.writeString(shell.directory().resolve("FILE"), section.data(), UTF_8);
      for (String line : GIVEN.getOrDefault(section.toString(), List.of())) {
        shell.run(line);
      }
      for (String line : section.lines()) {
        if (left.contains(line)) {
          continue;
        }
        Optional<String> missing = missing(shell, line);
        if (missing.isPresent()) {
          System.err.println(section + ": no " + missing.get() + " here, NOT run: " + line);
        } else {
          shell.run(line);
        }
      }
    }
  }

  private static Optional<String> missing(Shell shell, String line) throws IOException {
    for (Map.Entry<String, String> tool : TOOLS.entrySet()) {
      boolean uses = (" " + line + " ").matches(".*[ /]" + tool.getKey() + " .*");
      if (uses && !shell.succeeds(tool.getValue())) {
        return Optional.of(tool.getKey());
      }
    }
    return Optional.empty();
  }

  @Test
  void everyLineThatIsNotRunIsInAPage() throws IOException {
    List<String> lines =
        Pages.in(HOME).stream()
            .flatMap(page -> Pages.sections(HOME, page))
            .flatMap(section -> section.lines().stream())
            .toList();
    assertThat(lines).as("a fence in a list").anyMatch(line -> line.startsWith("vgpu mig plan"));
    assertThat(NotRun.reasons()).isNotEmpty();
    assertThat(NotRun.reasons().keySet()).filteredOn(line -> !lines.contains(line)).isEmpty();
  }

  @Test
  void everyFenceNamesItsLanguage() throws IOException {
    for (Path page : Pages.in(HOME)) {
      assertThat(Pages.languages(page)).as("%s", page).isSubsetOf(LANGUAGES);
    }
  }
}
