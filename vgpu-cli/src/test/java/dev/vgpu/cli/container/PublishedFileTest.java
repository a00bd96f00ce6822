package dev.vgpu.cli.container;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.vgpu.cli.console.UserException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.attribute.PosixFilePermissions;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

class PublishedFileTest {
  @TempDir Path directory;

  @Test
  void itIsThereAsLongAsItIsOpenAndForAllToRead() throws Exception {
    Path file = directory.resolve("vgpu.json");
    try (PublishedFile published = PublishedFile.write(file, "text")) {
      assertThat(published).isNotNull();
      assertThat(file).hasContent("text");
      assertThat(directory).isDirectoryContaining("glob:**/vgpu.json");
      assertThat(Files.getPosixFilePermissions(file))
          .isEqualTo(PosixFilePermissions.fromString("rw-r--r--"));
    }
    assertThat(directory).isEmptyDirectory();
  }

  @Test
  void whatLivesIsNotReplaced() throws Exception {
    Path file = directory.resolve("vgpu.json");
    try (PublishedFile first = PublishedFile.write(file, "first")) {
      assertThat(first).isNotNull();
      assertThatThrownBy(() -> PublishedFile.write(file, "second"))
          .isInstanceOf(UserException.class)
          .hasMessageContaining("another process");
      assertThat(file).hasContent("first");
    }
    assertThat(directory).isEmptyDirectory();
  }

  @Test
  void whatWasLeftBehindIsReplaced() throws Exception {
    Path file = Files.writeString(directory.resolve("vgpu.json"), "left behind");
    try (PublishedFile published = PublishedFile.write(file, "text")) {
      assertThat(published).isNotNull();
      assertThat(file).hasContent("text");
    }
    assertThat(file).doesNotExist();
  }

  @Test
  void anothersIsNotRemoved() throws Exception {
    Path file = directory.resolve("vgpu.json");
    try (PublishedFile published = PublishedFile.write(file, "text")) {
      assertThat(published).isNotNull();
      Files.delete(file);
      Files.writeString(file, "another's");
    }
    assertThat(file).hasContent("another's");
  }

  @Test
  void itsEndIsInTheDirectoryOfItsBeginning() throws Exception {
    Path before = Files.createDirectory(directory.resolve("before"));
    Path elsewhere = Files.createDirectory(directory.resolve("elsewhere"));
    Path kept = Files.writeString(elsewhere.resolve("vgpu.json"), "kept");
    try (PublishedFile published = PublishedFile.write(before.resolve("vgpu.json"), "text")) {
      assertThat(published).isNotNull();
      Files.move(before, directory.resolve("moved"));
      Files.createSymbolicLink(before, elsewhere);
    }
    assertThat(kept).hasContent("kept");
    assertThat(directory.resolve("moved")).isEmptyDirectory();
  }
}
