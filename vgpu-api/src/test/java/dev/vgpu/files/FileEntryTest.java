package dev.vgpu.files;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatCode;
import static org.assertj.core.api.Assertions.assertThatExceptionOfType;

import java.io.IOException;
import java.nio.file.Path;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

class FileEntryTest {
  private static final int FILE = 0100000;
  private static final int DIRECTORY = 0040000;
  private static final int LINK = 0120000;
  private static final int STICKY = 01000;
  private static final int ANOTHER_USER = 12_345;

  private static FileEntry ours(int group, int mode) throws IOException {
    return new FileEntry(Path.of("/a/b"), ProcessUser.id(), group, mode);
  }

  private static FileEntry ours(int mode) throws IOException {
    return ours(ProcessUser.id(), mode);
  }

  private static void refused(FileEntry entry, boolean isLast, String because) {
    assertThatExceptionOfType(UntrustedFileException.class)
        .isThrownBy(() -> entry.check(isLast))
        .withMessageContaining(because);
  }

  @ParameterizedTest
  @ValueSource(booleans = {true, false})
  void whatOnlyItsOwnerCanChangeIsTrusted(boolean isLast) throws IOException {
    ours(FILE | 0755).check(isLast);
    ours(ANOTHER_USER, FILE | 0755).check(isLast);
    new FileEntry(Path.of("/a"), 0, 0, DIRECTORY | 0755).check(isLast);
    // The group of the user's own name.
    ours(FILE | 0775).check(isLast);
  }

  @ParameterizedTest
  @ValueSource(booleans = {true, false})
  void whatOthersCanWriteToIsNot(boolean isLast) throws IOException {
    refused(ours(FILE | 0757), isLast, "every user can write to it: path=/a/b mode=757");
    refused(ours(ANOTHER_USER, FILE | 0775), isLast, "its group, gid=12345, can write to it");
  }

  @ParameterizedTest
  @ValueSource(booleans = {true, false})
  void anotherUsersFileIsNot(boolean isLast) {
    FileEntry theirs = new FileEntry(Path.of("/a"), ANOTHER_USER, 0, FILE | 0700);
    refused(theirs, isLast, "it belongs to another user: path=/a uid=12345");
    refused(
        new FileEntry(Path.of("/a"), ANOTHER_USER, 0, DIRECTORY | STICKY | 0777), isLast, "uid");
  }

  /** In a directory like /tmp nobody can replace another's file, but anybody can add one. */
  @Test
  void aStickyDirectoryIsTrustedOnTheWayOnly() throws IOException {
    FileEntry open = ours(DIRECTORY | STICKY | 0777);
    assertThatCode(() -> open.check(false)).doesNotThrowAnyException();
    refused(open, true, "every user");
    refused(ours(DIRECTORY | 0777), false, "every user");
    refused(ours(FILE | STICKY | 0777), false, "every user");
  }

  @Test
  void noGroupMayWriteToWhatIsPrivate() throws IOException {
    ours(DIRECTORY | 0755).checkPrivate();
    assertThatExceptionOfType(UntrustedFileException.class)
        .isThrownBy(() -> ours(DIRECTORY | 0770).checkPrivate())
        .withMessageContaining("chmod 0700");
  }

  @Test
  void aLinkIsTold() throws IOException {
    assertThat(ours(LINK | 0777).isLink()).isTrue();
    assertThat(ours(FILE | 0777).isLink()).isFalse();
    assertThat(ours(DIRECTORY | 0777).isLink()).isFalse();
  }
}
