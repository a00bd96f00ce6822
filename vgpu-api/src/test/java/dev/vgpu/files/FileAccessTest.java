package dev.vgpu.files;

import static org.assertj.core.api.Assertions.assertThat;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.attribute.PosixFilePermissions;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** Who may open root's files. Only root can give files away. */
class FileAccessTest {
  private static final int USER = 54_321;
  private static final int GROUP = 54_322;

  @TempDir Path base;
  private Path file;

  @BeforeEach
  void needRoot() throws IOException {
    assumeTrue(ProcessUser.id() == 0);
    file = Files.createFile(base.resolve("file"));
  }

  private Path directory(String permissions, int user, int group) throws IOException {
    Path made = Files.createDirectory(base.resolve("directory"));
    Files.setPosixFilePermissions(made, PosixFilePermissions.fromString(permissions));
    Files.setAttribute(made, "unix:gid", group);
    Files.setAttribute(made, "unix:uid", user);
    return made;
  }

  private String rights(Path path) throws IOException {
    return PosixFilePermissions.toString(Files.getPosixFilePermissions(path))
        + " "
        + Files.getAttribute(path, "unix:uid")
        + " "
        + Files.getAttribute(path, "unix:gid");
  }

  private void applied(Path directory, boolean writable, String rights) throws IOException {
    FileAccess.of(directory).apply(file, writable);
    assertThat(rights(file)).isEqualTo(rights);
  }

  @Test
  void filesOfADirectoryOfRootsOwnAreRootsAlone() throws IOException {
    Path own = directory("rwxr-xr-x", 0, 0);
    assertThat(FileAccess.isForGroup(own)).isFalse();
    applied(own, true, "rw------- 0 0");
    applied(own, false, "rw------- 0 0");
  }

  @Test
  void membersOfTheGroupReadFilesAndWriteSome() throws IOException {
    Path shared = directory("rwxr-x---", 0, GROUP);
    assertThat(FileAccess.isForGroup(shared)).isTrue();
    assertThat(FileAccess.isForOurGroup(shared)).isTrue();
    assertThat(FileAccess.of(shared).member()).isEmpty();
    applied(shared, true, "rw-rw---- 0 " + GROUP);
    applied(shared, false, "rw-r----- 0 " + GROUP);
    Path inner = Files.createDirectory(shared.resolve("inner"));
    FileAccess.of(shared).applyToDirectory(inner);
    assertThat(rights(inner)).isEqualTo("rwxr-x--- 0 " + GROUP);
  }

  @Test
  void aDirectoryThatTheGroupMayWriteToIsForNoGroup() throws IOException {
    Path open = directory("rwxrwx---", 0, GROUP);
    assertThat(FileAccess.isForGroup(open)).isFalse();
    applied(open, true, "rw------- 0 0");
  }

  /** Nobody but root can give a file to another user. */
  @Test
  void aDirectoryOfAnotherUserIsForNoGroup() throws IOException {
    Path others = directory("rwxr-x---", USER, GROUP);
    assertThat(FileAccess.isForGroup(others)).isFalse();
    applied(others, true, "rw------- 0 0");
  }

  @Test
  void aMemberOwnsWhatItWritesAndItsGroupReadsTheRest() throws IOException {
    Path lease = directory("rwx------", 0, 0);
    Path marker = Files.createFile(lease.resolve(FileAccess.MEMBER));
    Files.setAttribute(marker, "unix:uid", USER);
    Files.setAttribute(marker, "unix:gid", GROUP);
    assertThat(FileAccess.of(lease).member()).isPresent();
    FileAccess.of(lease).applyToDirectory(lease);
    assertThat(rights(lease)).isEqualTo("rwxr-x--- 0 " + GROUP);
    applied(lease, false, "rw-r----- 0 " + GROUP);
    applied(lease, true, "rw------- " + USER + " " + GROUP);
  }
}
