package dev.vgpu.cli.machine;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.vgpu.cli.console.UserException;
import java.io.File;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Map;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

class MachineTest {
  @TempDir private Path directory;

  @Test
  void machineIsDescribedInOneLine() {
    assertThat(Machine.current().description())
        .contains("GiB", "JDK " + System.getProperty("java.version"))
        .doesNotContain("\n");
  }

  @Test
  void processorTimeIsReadFromTheKernelsLine() {
    ProcessorTime before = ProcessorTime.parse("cpu  100 0 50 800 50 0 0 0 0 0").orElseThrow();
    ProcessorTime after = ProcessorTime.parse("cpu  300 0 150 1000 50 0 0 100 0 0").orElseThrow();
    assertThat(after.since(before)).isEqualTo(new ProcessorTime(3, 1, 6));
  }

  @ParameterizedTest
  @ValueSource(strings = {"", "cpu 1 2 3", "intr 1 2 3 4 5 6 7 8 9", "cpu a b c d e f g h i"})
  void otherLinesAreNoProcessorTime(String line) {
    assertThat(ProcessorTime.parse(line)).isEmpty();
  }

  @Test
  void classPathBeginsWithTheModulesOwnJar() throws Exception {
    Path target = module("a.jar" + File.pathSeparator + "b.jar");
    Path jar = Files.createFile(target.resolve("module-1.jar"));
    Files.createFile(target.resolve("module-1-sources.jar"));
    assertThat(checkout().classPath("module", "module"))
        .isEqualTo(jar + File.pathSeparator + "a.jar" + File.pathSeparator + "b.jar");
  }

  @Test
  void ownJarIsNotRepeated() throws Exception {
    Path target = module("");
    Path jar = Files.createFile(target.resolve("module-1.jar"));
    Files.writeString(target.resolve("classpath.txt"), jar + File.pathSeparator + "b.jar\n");
    assertThat(checkout().classPath("module", "module"))
        .isEqualTo(jar + File.pathSeparator + "b.jar");
  }

  @Test
  void missingJarSaysHowToBuildIt() throws IOException {
    module("a.jar");
    assertThatThrownBy(() -> checkout().classPath("module", "module"))
        .isInstanceOf(UserException.class)
        .hasMessageContaining("no module-*.jar")
        .hasMessageContaining("mvn");
  }

  @Test
  void directoryWithoutGitHasNoCommit() {
    assertThat(checkout().commit()).isEmpty();
  }

  @Test
  void blankHomeIsNoCheckout() {
    assertThat(SourceCheckout.find(Map.of("VGPU_HOME", " "))).isEmpty();
  }

  private SourceCheckout checkout() {
    return SourceCheckout.find(Map.of("VGPU_HOME", directory.toString())).orElseThrow();
  }

  private Path module(String dependencies) throws IOException {
    Path target = Files.createDirectories(directory.resolve("module/target"));
    Files.writeString(target.resolve("classpath.txt"), dependencies);
    return target;
  }
}
