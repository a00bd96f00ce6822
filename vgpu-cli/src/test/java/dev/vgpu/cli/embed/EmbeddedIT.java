package dev.vgpu.cli.embed;

import static java.nio.charset.StandardCharsets.UTF_8;
import static org.assertj.core.api.Assertions.assertThat;

import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;

/** vgpu inside a server that loads it, drops it and loads it again. */
@Timeout(value = 8, unit = TimeUnit.MINUTES)
class EmbeddedIT {
  @TempDir Path directory;

  private final List<Process> processes = new ArrayList<>();

  /** Runs a main class with arguments in a JVM of 64 MiB. */
  private List<String> run(Class<?> main, String... arguments) throws Exception {
    List<String> command =
        new ArrayList<>(
            List.of(
                Path.of(System.getProperty("java.home"), "bin", "java").toString(),
                "-XX:TieredStopAtLevel=1",
                "-XX:+UseSerialGC",
                "-Xmx64m",
                "-cp",
                System.getProperty("java.class.path"),
                main.getName()));
    command.addAll(List.of(arguments));
    ProcessBuilder builder = new ProcessBuilder(command);
    builder.environment().keySet().removeIf(name -> name.startsWith("VGPU_"));
    builder.environment().put("VGPU_RUN_DIR", directory.resolve("run").toString());
    builder.environment().put("VGPU_EMULATOR", "devices=2,memory=4GiB,context=64MiB");
    Path output = directory.resolve("output");
    Process process = builder.redirectErrorStream(true).redirectOutput(output.toFile()).start();
    processes.add(process);
    boolean ended = process.waitFor(6, TimeUnit.MINUTES);
    List<String> lines = Files.readAllLines(output, UTF_8);
    assertThat(ended).as("ended in time: %s", lines).isTrue();
    assertThat(process.exitValue()).as("%s", lines).isZero();
    return lines;
  }

  @AfterEach
  void endAll() throws Exception {
    for (Process process : processes) {
      process.destroyForcibly().waitFor();
    }
  }

  /** Each copy is used, closed and dropped, and its class loader is closed at once. */
  @Test
  void fiftyClassLoadersAreCollectedAndNoThreadIsLeft() throws Exception {
    List<String> lines = run(Server.class, Application.class.getName(), "50", "1");
    assertThat(lines).filteredOn(line -> line.startsWith("used gpus=2 readings=2 ")).hasSize(50);
    assertThat(lines).filteredOn(line -> line.startsWith("threads")).containsOnly("threads ");
    assertThat(lines).last().isEqualTo("left 0");
    assertThat(lines).noneMatch(line -> line.contains("NoClassDefFoundError"));
  }

  /** Several copies of vgpu in one JVM share the node as processes do. */
  @Test
  void copiesInOneJvmShareTheNode() throws Exception {
    List<String> lines = run(Server.class, Application.class.getName(), "6", "3");
    assertThat(lines).filteredOn(line -> line.startsWith("used gpus=2 readings=2 ")).hasSize(6);
    assertThat(lines).filteredOn(line -> line.startsWith("threads")).containsOnly("threads ");
    assertThat(lines).last().isEqualTo("left 0");
    assertThat(lines).noneMatch(line -> line.contains("already loaded in another classloader"));
  }

  /**
   * Closing during calls, interrupting, calling back, using it during JVM shutdown, and not closing
   * it.
   */
  @Test
  void aHostMayBeRough() throws Exception {
    assertThat(run(RoughUse.class))
        .contains(
            "closed during calls",
            "closed interrupted true",
            "closed in a listener true",
            "left open true",
            "used at the end true");
    assertThat(run(RoughUse.class)).as("the next one").contains("left open true");
  }
}
