package dev.vgpu.files;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import org.junit.jupiter.api.Test;

class OpenFilesTest {
  /** The soft limit, as the kernel tells it; Long.MAX_VALUE: none. */
  private static long limit() throws IOException {
    String line =
        Files.readAllLines(Path.of("/proc/self/limits")).stream()
            .filter(each -> each.startsWith("Max open files"))
            .findFirst()
            .orElseThrow();
    String soft = line.split("\\s+", -1)[3];
    return soft.equals("unlimited") ? Long.MAX_VALUE : Long.parseLong(soft);
  }

  @Test
  void oneKindOpensAtMostAQuarter() throws IOException {
    assertThat(OpenFiles.part(Integer.MAX_VALUE))
        .isEqualTo((int) Math.min(Integer.MAX_VALUE, limit() / 4))
        .isPositive();
  }

  @Test
  void noMoreThanItAsksFor() {
    assertThat(OpenFiles.part(1)).isEqualTo(1);
    assertThat(OpenFiles.part(7)).isEqualTo(7);
  }
}
