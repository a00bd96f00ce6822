package dev.vgpu.cuda.process;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Map;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

class LeaseProgramsTest {
  @TempDir private Path proc;
  private LeasePrograms programs;

  @BeforeEach
  void open() throws IOException {
    process(1, "PATH=/bin", "HOME=/");
    programs =
        new LeasePrograms(
            Map.of("VGPU_LEASE", "a-1", "VGPU_RUN_DIR", "/run/vgpu", "LD_PRELOAD", "x"),
            new ProcFiles(proc));
  }

  private void process(long pid, String... environment) throws IOException {
    Path directory = Files.createDirectories(proc.resolve(Long.toString(pid)));
    String text = String.join("\0", environment) + (environment.length == 0 ? "" : "\0");
    Files.writeString(directory.resolve("environ"), text);
  }

  @Test
  void programIsKnownByBothVariables() throws IOException {
    process(20, "VGPU_LEASE=a-10", "VGPU_RUN_DIR=/run/vgpu");
    process(21, "VGPU_LEASE=a-1", "VGPU_RUN_DIR=/run/vgpu2");
    process(22, "MY_VGPU_LEASE=a-1", "VGPU_RUN_DIR=/run/vgpu");
    assertThat(programs.anyLives()).isFalse();
    process(30, "A=b", "VGPU_RUN_DIR=/run/vgpu", "VGPU_LEASE=a-1");
    assertThat(programs.anyLives()).isTrue();
  }

  @Test
  void programThatHasEndedIsKnownNoMoreThoughItsNumberIs() throws IOException {
    process(30, "VGPU_LEASE=a-1", "VGPU_RUN_DIR=/run/vgpu");
    process(31, "VGPU_LEASE=a-1", "VGPU_RUN_DIR=/run/vgpu");
    assertThat(programs.anyLives()).isTrue();
    process(30); // a zombie
    assertThat(programs.anyLives()).isTrue();
    process(31, "PATH=/bin");
    assertThat(programs.anyLives()).isFalse();
  }
}
