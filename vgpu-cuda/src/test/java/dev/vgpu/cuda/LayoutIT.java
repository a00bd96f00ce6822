package dev.vgpu.cuda;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** The C compiler and the generator see the same layout. */
class LayoutIT {
  @TempDir Path directory;

  private List<String> run(String... command) throws IOException, InterruptedException {
    Path output = directory.resolve("output");
    Process process =
        new ProcessBuilder(command)
            .redirectErrorStream(true)
            .redirectOutput(output.toFile())
            .start();
    int code = process.waitFor();
    List<String> lines = Files.readAllLines(output);
    assertThat(code).as("%s: %s", List.of(command), lines).isZero();
    return lines;
  }

  @Test
  void cAndJavaSeeTheSameLayout() throws IOException, InterruptedException {
    String probe = directory.resolve("probe").toString();
    run("cc", "-std=c11", "-Isrc/main/shm", "-o", probe, "src/test/resources/layout_probe.c");
    List<String> generated =
        Files.readAllLines(Path.of("target/generated-sources/layout/vgpu_shm.txt"));
    assertThat(run(probe)).containsExactlyInAnyOrderElementsOf(generated);
  }
}
