package dev.vgpu.core.disk;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import dev.vgpu.VgpuException;
import dev.vgpu.files.ProcessUser;
import dev.vgpu.files.RunPlace.Origin;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.attribute.PosixFilePermissions;
import java.util.Map;
import java.util.Optional;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

class RunDirectoryTest {
  @TempDir Path temporary;

  @Test
  void optionGoesBeforeTheEnvironmentAndThatBeforeTheDefaults() {
    Map<String, String> both = Map.of("VGPU_RUN_DIR", "/b", "XDG_RUNTIME_DIR", "/c");
    assertThat(RunDirectory.resolve(Optional.of(Path.of("/a")), both))
        .isEqualTo(new RunDirectory(Path.of("/a"), Origin.NAMED));
    assertThat(RunDirectory.resolve(Optional.empty(), both))
        .isEqualTo(new RunDirectory(Path.of("/b"), Origin.NAMED));
    assertThat(RunDirectory.resolve(Optional.empty(), Map.of("XDG_RUNTIME_DIR", "/c")))
        .isEqualTo(new RunDirectory(Path.of("/c/vgpu"), Origin.DEFAULT));
    assertThat(RunDirectory.resolve(Optional.empty(), Map.of("VGPU_RUN_DIR", "")))
        .isEqualTo(new RunDirectory(Path.of("/run/vgpu"), Origin.DEFAULT));
  }

  /** Only root can give a directory to another group. */
  @Test
  void leasesOfAGroupsDirectoryCanBePassedThrough() throws Exception {
    assumeTrue(ProcessUser.id() == 0);
    Path path = Files.createDirectory(temporary.resolve("machine"));
    Files.setAttribute(path, "unix:gid", 54_321);
    Files.setPosixFilePermissions(path, PosixFilePermissions.fromString("rwxr-x---"));
    RunDirectory directory = named(path);
    directory.prepare();
    assertThat(directory.isOfRoot()).isFalse();
    assertThat(PosixFilePermissions.toString(Files.getPosixFilePermissions(directory.leases())))
        .isEqualTo("rwx--x--x");
  }

  private RunDirectory named(Path path) {
    return RunDirectory.resolve(Optional.of(path), Map.of());
  }

  @Test
  void missingDirectoryIsMadeForItsOwnerOnly() throws Exception {
    RunDirectory directory = named(temporary.resolve("a").resolve("b"));
    directory.prepare();
    directory.prepare();
    assertThat(PosixFilePermissions.toString(Files.getPosixFilePermissions(directory.path())))
        .isEqualTo("rwx------");
    assertThat(directory.leases()).isDirectory();
  }

  @Test
  void defaultIsNotMadeWhereItsParentIsMissing() {
    Path parent = temporary.resolve("session");
    RunDirectory directory =
        RunDirectory.resolve(Optional.empty(), Map.of("XDG_RUNTIME_DIR", parent.toString()));
    assertThatThrownBy(directory::prepare)
        .isInstanceOf(VgpuException.class)
        .hasMessageContaining(parent.toString());
    assertThat(parent).doesNotExist();
  }

  @Test
  void pathThatIsTooLongForASocketIsRefused() {
    assertThatThrownBy(() -> named(temporary.resolve("x".repeat(100))).prepare())
        .isInstanceOf(VgpuException.class)
        .hasMessageContaining("too long for a socket's address");
  }

  @Test
  void fileIsRefused() throws Exception {
    Path file = Files.createFile(temporary.resolve("file"));
    assertThatThrownBy(() -> named(file).prepare()).hasMessageContaining("not a directory");
  }

  @Test
  void symbolicLinkIsNotFollowed() throws Exception {
    Path link = Files.createSymbolicLink(temporary.resolve("link"), temporary);
    assertThatThrownBy(() -> named(link).prepare()).hasMessageContaining("not a directory");
  }

  @Test
  void directoryThatEverybodyCanWriteIntoIsRefused() throws Exception {
    Path open = Files.createDirectory(temporary.resolve("open"));
    Files.setPosixFilePermissions(open, PosixFilePermissions.fromString("rwxrwxrwx"));
    assertThatThrownBy(() -> named(open).prepare()).hasMessageContaining("chmod go-w");
  }

  @Test
  void directoryThatAGroupCanWriteIntoIsRefused() throws Exception {
    Path shared = Files.createDirectory(temporary.resolve("shared"));
    assertThat(new ProcessBuilder("chmod", "2770", shared.toString()).start().waitFor()).isZero();
    assertThatThrownBy(() -> named(shared).prepare())
        .hasMessageContaining("its group, gid=")
        .hasMessageContaining("chmod 0700")
        .hasMessageContaining("name a directory of your own");
    assertThat(shared).isEmptyDirectory();
  }

  @Test
  void directoryInAnotherThatAllCanWriteIntoIsRefused() throws Exception {
    Path open = Files.createDirectory(temporary.resolve("open"));
    Files.setPosixFilePermissions(open, PosixFilePermissions.fromString("rwxrwxrwx"));
    Path inner = Files.createDirectory(open.resolve("vgpu"));
    Files.setPosixFilePermissions(inner, PosixFilePermissions.fromString("rwx------"));
    assertThatThrownBy(() -> named(inner).prepare()).hasMessageContaining("path=" + open);
  }

  /** A user who once had write access could have left it there. */
  @Test
  void directoryWithSomethingOfAnotherUserInItIsRefused() throws Exception {
    RunDirectory directory = named(temporary.resolve("run"));
    directory.prepare();
    Path lib = Files.createDirectory(directory.path().resolve("lib"));
    directory.prepare();
    if (ProcessUser.id() == 0) { // only root can change the owner
      Files.setAttribute(lib, "unix:uid", 12_345);
      assertThatThrownBy(directory::prepare)
          .hasMessageContaining("belongs to another user: path=" + lib);
    }
  }

  @Test
  void systemDirectoryIsRefused() {
    // Read-only for other users; for root, the file system does not support it.
    assertThatThrownBy(() -> named(Path.of("/proc/vgpu")).prepare())
        .isInstanceOf(VgpuException.class)
        .hasMessageContaining("/proc/vgpu");
  }
}
