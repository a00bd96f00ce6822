package dev.vgpu.k8s.node.holding;

import static java.nio.charset.StandardCharsets.UTF_8;

import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.channels.FileChannel;
import java.nio.file.DirectoryStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardCopyOption;
import java.nio.file.StandardOpenOption;
import java.nio.file.attribute.PosixFilePermissions;
import java.util.ArrayList;
import java.util.List;
import java.util.Objects;

/**
 * The files of a directory that are named {@code PREFIX KEY .json}. Each file is written
 * atomically, and survives a crash of the machine. Confined to one thread at a time.
 */
final class KeptFiles {
  private static final String SUFFIX = ".json";
  private static final String PART = ".part";

  private final Path directory;
  private final String prefix;
  private final String permissions;
  private final Step.Listener steps;

  KeptFiles(Path directory, String prefix, String permissions, Step.Listener steps)
      throws IOException {
    this.directory = Files.createDirectories(directory);
    this.prefix = prefix;
    this.permissions = permissions;
    this.steps = steps;
    removeParts();
  }

  /** Removes files that a process had not completed when it died. */
  private void removeParts() throws IOException {
    try (DirectoryStream<Path> parts = Files.newDirectoryStream(directory, prefix + "*" + PART)) {
      for (Path part : parts) {
        Files.delete(part);
      }
    }
  }

  void write(String key, String text) throws IOException {
    Path part = directory.resolve(prefix + key + PART);
    try (FileChannel content =
        FileChannel.open(
            part,
            StandardOpenOption.CREATE,
            StandardOpenOption.TRUNCATE_EXISTING,
            StandardOpenOption.WRITE)) {
      ByteBuffer bytes = ByteBuffer.wrap(text.getBytes(UTF_8));
      while (bytes.hasRemaining()) {
        content.write(bytes);
      }
      content.force(true);
    }
    Files.setPosixFilePermissions(part, PosixFilePermissions.fromString(permissions));
    steps.reached(Step.FILE_WRITTEN);
    Files.move(part, file(key), StandardCopyOption.ATOMIC_MOVE);
    syncDirectory();
  }

  void remove(String key) throws IOException {
    if (Files.deleteIfExists(file(key))) {
      syncDirectory();
    }
  }

  private void syncDirectory() throws IOException {
    try (FileChannel channel = FileChannel.open(directory, StandardOpenOption.READ)) {
      channel.force(true);
    }
  }

  Path file(String key) {
    return directory.resolve(prefix + key + SUFFIX);
  }

  /** The keys of all files, in any order. */
  List<String> keys() throws IOException {
    List<String> keys = new ArrayList<>();
    try (DirectoryStream<Path> files = Files.newDirectoryStream(directory, prefix + "*" + SUFFIX)) {
      for (Path file : files) {
        String name = Objects.requireNonNull(file.getFileName(), "name").toString();
        keys.add(name.substring(prefix.length(), name.length() - SUFFIX.length()));
      }
    }
    return keys;
  }
}
