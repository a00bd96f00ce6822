package dev.vgpu.files;

import static org.assertj.core.api.Assertions.assertThat;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import dev.vgpu.files.RunPlace.Origin;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.attribute.PosixFilePermissions;
import java.util.Map;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

class RunPlaceTest {
  private static final Map<String, String> SESSION = Map.of("XDG_RUNTIME_DIR", "/c");

  @TempDir Path temporary;

  @Test
  void theNamedDirectoryGoesBeforeTheSessions() {
    assertThat(RunPlace.of(Map.of("VGPU_RUN_DIR", "/a/../b", "XDG_RUNTIME_DIR", "/c")))
        .isEqualTo(new RunPlace(Path.of("/b"), Origin.NAMED));
    assertThat(RunPlace.of(Map.of("VGPU_RUN_DIR", "b")).path()).isAbsolute();
    assertThat(RunPlace.of(SESSION, temporary))
        .isEqualTo(new RunPlace(Path.of("/c/vgpu"), Origin.DEFAULT));
  }

  @Test
  void emptyAndBlankNamesCountAsNone() {
    for (String none : new String[] {"", " "}) {
      assertThat(RunPlace.of(Map.of("VGPU_RUN_DIR", none, "XDG_RUNTIME_DIR", none), temporary))
          .isEqualTo(new RunPlace(temporary, Origin.DEFAULT));
    }
  }

  /** Only root can give a directory to another group. */
  @Test
  void theMachinesDirectoryGoesBeforeTheSessionsIfItIsForOurGroup() throws Exception {
    assumeTrue(ProcessUser.id() == 0);
    Path machine = Files.createDirectory(temporary.resolve("machine"));
    RunPlace own = new RunPlace(Path.of("/c/vgpu"), Origin.DEFAULT);
    assertThat(RunPlace.of(SESSION, machine)).isEqualTo(own);
    Files.setAttribute(machine, "unix:gid", 54_321);
    Files.setPosixFilePermissions(machine, PosixFilePermissions.fromString("rwx------"));
    assertThat(RunPlace.of(SESSION, machine)).isEqualTo(own);
    Files.setPosixFilePermissions(machine, PosixFilePermissions.fromString("rwxr-x---"));
    assertThat(RunPlace.of(SESSION, machine)).isEqualTo(new RunPlace(machine, Origin.MACHINE));
    assertThat(RunPlace.of(Map.of("VGPU_RUN_DIR", "/b"), machine))
        .isEqualTo(new RunPlace(Path.of("/b"), Origin.NAMED));
    assertThat(RunPlace.isOfRoot(machine)).as("this process is root's").isFalse();
  }
}
