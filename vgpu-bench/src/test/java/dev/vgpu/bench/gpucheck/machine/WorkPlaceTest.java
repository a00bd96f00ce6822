package dev.vgpu.bench.gpucheck.machine;

import static org.assertj.core.api.Assertions.assertThat;

import dev.vgpu.files.ProcessUser;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.attribute.PosixFilePermissions;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** Which leftovers of an earlier check are removed. */
class WorkPlaceTest {
  /** Larger than any process id. */
  private static final String DEAD = "4194305 1";

  @TempDir Path base;

  private Path leftBehind(String name, String permissions) throws IOException {
    Path directory = Files.createDirectory(base.resolve("vgpu-gpu-check" + name));
    Files.writeString(directory.resolve("owner"), DEAD);
    Files.writeString(directory.resolve("log"), "text");
    Files.setPosixFilePermissions(directory, PosixFilePermissions.fromString(permissions));
    return directory;
  }

  @Test
  void whatACheckLeftBehindIsRemovedAndLinksInItAreNotFollowed() throws IOException {
    Path left = leftBehind("1", "rwx------");
    Path kept = Files.writeString(Files.createDirectory(base.resolve("mine")).resolve("x"), "kept");
    Files.createSymbolicLink(left.resolve("away"), kept.getParent());
    WorkPlace made = WorkPlace.make(base);
    assertThat(left).doesNotExist();
    assertThat(kept).exists();
    made.remove();
    assertThat(made.directory()).doesNotExist();
  }

  @Test
  void nothingIsLeftWhereTwoRemoveItAtOnce() throws Exception {
    for (int round = 0; round < 10; round++) {
      WorkPlace made = WorkPlace.make(base);
      for (int i = 0; i < 200; i++) {
        Files.createFile(made.directory().resolve("log" + i));
      }
      Thread other = new Thread(made::end);
      other.start();
      made.remove();
      other.join();
      assertThat(made.directory()).doesNotExist();
    }
  }

  @Test
  void whatAnotherUserCanChangeIsLeftAlone() throws IOException {
    Path open = leftBehind("1", "rwxrwxrwx");
    Path theirs = leftBehind("2", "rwx------");
    Path link = base.resolve("vgpu-gpu-check3");
    Files.createSymbolicLink(link, theirs);
    if (ProcessUser.id() == 0) {
      Files.setAttribute(theirs, "unix:uid", 12_345);
    } else {
      Files.setPosixFilePermissions(theirs, PosixFilePermissions.fromString("rwxrwxrwx"));
    }
    WorkPlace made = WorkPlace.make(base);
    assertThat(open.resolve("log")).exists();
    assertThat(theirs.resolve("log")).exists();
    made.remove();
  }

  @Test
  void oneWhoseOwnerIsNoFileIsLeftAlone() throws Exception {
    Path left = leftBehind("1", "rwx------");
    Files.delete(left.resolve("owner"));
    Path pipe = left.resolve("owner"); // opening it would block for ever
    assertThat(new ProcessBuilder("mkfifo", pipe.toString()).start().waitFor()).isZero();
    WorkPlace made = WorkPlace.make(base);
    assertThat(left).exists();
    made.remove();
  }
}
