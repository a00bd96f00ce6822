package dev.vgpu.kmod;

import static java.nio.charset.StandardCharsets.US_ASCII;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;

/**
 * The module's tenants: a directory each, whose files set and tell. Safe for use by several
 * threads.
 */
class Tenants {
  private final Path directory;

  Tenants(Path directory) {
    this.directory = directory;
  }

  boolean exists(String tenant) {
    return Files.isDirectory(directory.resolve(tenant));
  }

  /** The kernel puts the files into a new directory, and takes them away with it. */
  void make(String tenant) throws IOException {
    Files.createDirectory(directory.resolve(tenant));
  }

  void remove(String tenant) throws IOException {
    Files.deleteIfExists(directory.resolve(tenant));
  }

  void set(String tenant, String file, String value) throws IOException {
    Files.writeString(
        directory.resolve(tenant).resolve(file),
        value,
        US_ASCII,
        StandardOpenOption.WRITE,
        StandardOpenOption.TRUNCATE_EXISTING);
  }

  String text(String tenant, String file) throws IOException {
    return Files.readString(directory.resolve(tenant).resolve(file), US_ASCII).strip();
  }

  /** A number of {@code stats}, 0 where there is none of that name. */
  long stat(String tenant, String name) throws IOException {
    for (String line : text(tenant, "stats").lines().toList()) {
      if (line.startsWith(name + " ")) {
        return Long.parseLong(line.substring(name.length() + 1).strip());
      }
    }
    return 0;
  }
}
