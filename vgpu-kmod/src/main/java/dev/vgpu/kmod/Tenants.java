package dev.vgpu.kmod;

import static java.nio.charset.StandardCharsets.US_ASCII;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;

/**
 * The module's tenants: one directory each, whose files set and show values. Safe for use by
 * several threads.
 */
class Tenants {
  /** More than any machine has: 2<sup>50</sup>. */
  static final long MOST = 1L << 50;

  private final Path directory;

  Tenants(Path directory) {
    this.directory = directory;
  }

  boolean exists(String tenant) {
    return Files.isDirectory(directory.resolve(tenant));
  }

  /** Creates a tenant. The kernel adds the files to the new directory and removes them with it. */
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

  /**
   * {@return a number of the module's, which has 64 bits without a sign} Where a program deceives
   * the ledger, it counts up to the largest one. More than {@link #MOST} is shown as that, so that
   * sums over leases stay correct.
   */
  static long number(String text) {
    long number = Long.parseUnsignedLong(text);
    return Long.compareUnsigned(number, MOST) > 0 ? MOST : number;
  }

  /** {@return a number in {@code stats}; 0 if it is not there} */
  long stat(String tenant, String name) throws IOException {
    for (String line : text(tenant, "stats").lines().toList()) {
      if (line.startsWith(name + " ")) {
        return number(line.substring(name.length() + 1).strip());
      }
    }
    return 0;
  }
}
