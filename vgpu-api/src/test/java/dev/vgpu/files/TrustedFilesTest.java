package dev.vgpu.files;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.NoSuchFileException;
import java.nio.file.Path;
import java.nio.file.attribute.PosixFilePermissions;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;

/** The rule for files that are loaded, mapped, believed or deleted. */
@Timeout(30)
class TrustedFilesTest {
  private static final int ANOTHER_USER = 12_345;

  @TempDir Path base;

  private Path directory(String name, String permissions) throws IOException {
    Path made = Files.createDirectories(base.resolve(name));
    Files.setPosixFilePermissions(made, PosixFilePermissions.fromString(permissions));
    return made;
  }

  private static void refused(Path path, String because) {
    assertThat(TrustedFiles.objection(path))
        .hasValueSatisfying(why -> assertThat(why).contains(because));
    assertThatThrownBy(() -> TrustedFiles.check(path)).isInstanceOf(UntrustedFileException.class);
  }

  /** Only root can change a file's owner; the rest runs as any user. */
  private static boolean giveAway(Path path, String what) throws IOException {
    if (ProcessUser.id() != 0) {
      return false;
    }
    Files.setAttribute(path, what, ANOTHER_USER, java.nio.file.LinkOption.NOFOLLOW_LINKS);
    return true;
  }

  @Test
  void whatIsOnesOwnIsTrustedAndWhatIsNotThereYet() throws IOException {
    Path own = directory("own", "rwx------");
    Path file = Files.createFile(own.resolve("file"));
    assertThat(TrustedFiles.objection(file)).isEmpty();
    assertThat(TrustedFiles.check(own.resolve("not/there/./yet")))
        .isEqualTo(own.resolve("not/there/yet"));
    assertThat(TrustedFiles.objection(Path.of("/usr/bin/env"))).isEmpty();
    assertThat(TrustedFiles.objection(Path.of("/"))).isEmpty();
  }

  @Test
  void whatAllCanWriteToIsNot() throws IOException {
    Path open = directory("open", "rwxrwxrwx");
    refused(open, "every user can write to it");
    refused(Files.createFile(open.resolve("file")), "chmod go-w");
    refused(open.resolve("not-there"), open.toString());
    Path own = directory("own", "rwx------");
    Path file = Files.createFile(own.resolve("file"));
    Files.setPosixFilePermissions(file, PosixFilePermissions.fromString("rw-rw-rw-"));
    refused(file, file.toString());
  }

  @Test
  void anotherUsersFilesAndGroupsAreNot() throws IOException {
    Path theirs = directory("theirs", "rwx------");
    Path ours = directory("ours", "rwxrwx---");
    Path file = Files.createFile(theirs.resolve("file"));
    assertThat(TrustedFiles.objection(ours)).isEmpty(); // the user's own group
    if (giveAway(theirs, "unix:uid") && giveAway(ours, "unix:gid")) {
      refused(file, "belongs to another user: path=" + theirs + " uid=" + ANOTHER_USER);
      refused(ours, "its group, gid=" + ANOTHER_USER);
      Path link = Files.createSymbolicLink(base.resolve("link"), directory("own", "rwx------"));
      assertThat(TrustedFiles.objection(link)).isEmpty();
      assertThat(giveAway(link, "unix:uid")).isTrue();
      refused(link, "belongs to another user");
    }
  }

  @Test
  void stickyDirectoriesAreTrustedOnTheWayOnly() throws Exception {
    Path sticky = directory("sticky", "rwx------");
    assertThat(new ProcessBuilder("chmod", "1777", sticky.toString()).start().waitFor()).isZero();
    assertThat(TrustedFiles.objection(sticky.resolve("not-there"))).isEmpty();
    assertThat(TrustedFiles.objection(Files.createFile(sticky.resolve("file")))).isEmpty();
    refused(sticky, "every user can write to it");
    if (giveAway(sticky.resolve("file"), "unix:uid")) {
      refused(sticky.resolve("file"), "belongs to another user");
    }
  }

  @Test
  void linksAreFollowedAndWhatTheyLeadToIsLookedAt() throws IOException {
    Path own = directory("own", "rwx------");
    Path link = Files.createSymbolicLink(base.resolve("link"), Path.of("own"));
    assertThat(TrustedFiles.check(link.resolve("file"))).isEqualTo(own.resolve("file"));
    assertThat(TrustedFiles.check(link.resolve("../own/file"))).isEqualTo(own.resolve("file"));
    Path away = Files.createSymbolicLink(own.resolve("away"), directory("open", "rwxrwxrwx"));
    refused(away.resolve("file"), "every user can write to it");
    Path round = base.resolve("round");
    Files.createSymbolicLink(round, round);
    refused(round, "too many links");
  }

  @Test
  void onlyFilesOfABoundedLengthAreRead() throws Exception {
    Path file = Files.writeString(base.resolve("file"), "four");
    assertThat(TrustedFiles.readText(file, 4)).isEqualTo("four");
    assertThatThrownBy(() -> TrustedFiles.read(file, 3)).isInstanceOf(TooLongException.class);
    assertThatThrownBy(() -> TrustedFiles.readAtMost(Path.of("/dev/zero"), 1000))
        .isInstanceOf(TooLongException.class);
    assertThatThrownBy(() -> TrustedFiles.read(base.resolve("none"), 3))
        .isInstanceOf(NoSuchFileException.class);
    assertThatThrownBy(() -> TrustedFiles.readAtMost(base.resolve("none"), 3))
        .isInstanceOf(NoSuchFileException.class);
    Path pipe = base.resolve("pipe"); // opening it would block forever
    assertThat(new ProcessBuilder("mkfifo", pipe.toString()).start().waitFor()).isZero();
    assertThatThrownBy(() -> TrustedFiles.read(pipe, 3)).hasMessageContaining("not a file");
  }

  @Test
  void treesAreDeletedWithoutFollowingLinks() throws IOException {
    Path kept = Files.createFile(directory("elsewhere", "rwx------").resolve("kept"));
    Path tree = directory("tree", "rwx------");
    Files.createFile(Files.createDirectories(tree.resolve("a/b")).resolve("file"));
    Files.createSymbolicLink(tree.resolve("a/away"), kept.getParent());
    TrustedFiles.deleteTree(tree);
    assertThat(tree).doesNotExist();
    assertThat(kept).exists();
    TrustedFiles.deleteTree(tree);
    Path link = Files.createSymbolicLink(base.resolve("link"), base.resolve("open"));
    Files.createFile(directory("open", "rwxrwxrwx").resolve("file"));
    assertThatThrownBy(() -> TrustedFiles.deleteTree(link))
        .isInstanceOf(UntrustedFileException.class);
    assertThat(base.resolve("open/file")).exists();
  }

  @Test
  void directoriesAreMadeForTheirOwnerAlone() throws IOException {
    Path made = TrustedFiles.makeDirectories(base.resolve("a/b"));
    assertThat(PosixFilePermissions.toString(Files.getPosixFilePermissions(made.getParent())))
        .isEqualTo("rwx------");
    Path open = directory("open", "rwxrwxrwx");
    assertThatThrownBy(() -> TrustedFiles.makeDirectories(open.resolve("a")))
        .isInstanceOf(UntrustedFileException.class);
    assertThat(open).isEmptyDirectory();
  }

  @Test
  void nobodyElseHasAnythingInAPrivateDirectory() throws IOException {
    Path own = directory("own", "rwx------");
    Path inner = Files.createDirectory(own.resolve("inner"));
    TrustedFiles.checkPrivate(own);
    Path group = directory("group", "rwxrwx---");
    assertThatThrownBy(() -> TrustedFiles.checkPrivate(group)).hasMessageContaining("chmod 0700");
    if (giveAway(inner, "unix:uid")) {
      assertThatThrownBy(() -> TrustedFiles.checkPrivate(own))
          .hasMessageContaining("belongs to another user: path=" + inner);
    }
  }
}
