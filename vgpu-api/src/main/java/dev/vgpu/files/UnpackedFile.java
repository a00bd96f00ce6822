package dev.vgpu.files;

import java.io.IOException;
import java.io.InputStream;
import java.io.OutputStream;
import java.net.JarURLConnection;
import java.net.URL;
import java.net.URLConnection;
import java.nio.charset.StandardCharsets;
import java.nio.file.NoSuchFileException;
import java.nio.file.Path;
import java.security.MessageDigest;
import java.security.NoSuchAlgorithmException;
import java.util.HexFormat;
import java.util.jar.JarEntry;
import java.util.zip.CRC32;
import java.util.zip.CheckedInputStream;

/**
 * A native library or program of a jar, unpacked as {@code DIRECTORY/SHA-256/NAME}, so that several
 * versions can exist side by side. Its content is checked against the checksum that the build
 * wrote. It appears atomically, so several processes may unpack it at once. An existing file is
 * used if its path is {@link TrustedFiles trusted} and its bytes are those of the jar. Immutable.
 *
 * @param jar a class of the jar
 * @param resource its place in the jar; the checksum is beside it
 * @param name the file's name
 */
public record UnpackedFile(Class<?> jar, String resource, String name) {
  private static final String PERMISSIONS = "r-xr-xr-x";

  /**
   * The size and CRC of a file's content. They only detect damage: the trusted path already proves
   * that no other user wrote the file. SHA-256 is not used because a JVM that has just started
   * takes 100 ms to load its providers.
   */
  private record Sum(long bytes, long crc) {
    static Sum of(InputStream content) throws IOException {
      CheckedInputStream summed = new CheckedInputStream(content, new CRC32());
      long bytes = summed.transferTo(OutputStream.nullOutputStream());
      return new Sum(bytes, summed.getChecksum().getValue());
    }
  }

  /**
   * {@return the file; unpacked if it is missing or damaged}
   *
   * @param directory created if missing, with access for its owner only
   * @throws UntrustedFileException if another user can change the file
   * @throws IOException if it cannot be written there, or if the jar's copy is missing or damaged
   */
  public Path in(Path directory) throws IOException {
    String checksum = new String(read(resource + ".sha256"), StandardCharsets.US_ASCII).strip();
    Path place = directory.toAbsolutePath().resolve(checksum);
    Path target = place.resolve(name);
    if (!isWhole(target)) {
      byte[] content = read(resource);
      String found = sha256(content);
      if (!checksum.equals(found)) {
        throw new IOException(
            "it is damaged in the jar: name=" + name + " sha256=" + found + " not=" + checksum);
      }
      Path ignored = TrustedFiles.makeDirectories(place);
      TrustedFiles.put(target, content, PERMISSIONS);
    }
    return target;
  }

  private boolean isWhole(Path file) throws IOException {
    try (InputStream content = TrustedFiles.open(file)) {
      return Sum.of(content).equals(sum());
    } catch (NoSuchFileException e) {
      return false;
    }
  }

  /** Taken from the jar's directory without inflating; computed if the jar does not have it. */
  private Sum sum() throws IOException {
    URL url = jar.getResource(resource);
    if (url == null) {
      throw missing(resource);
    }
    URLConnection connection = url.openConnection();
    connection.setUseCaches(false); // a cached connection would keep the jar open forever
    try (InputStream stream = connection.getInputStream()) {
      JarEntry entry = connection instanceof JarURLConnection inJar ? inJar.getJarEntry() : null;
      return entry != null && entry.getSize() >= 0 && entry.getCrc() >= 0
          ? new Sum(entry.getSize(), entry.getCrc())
          : Sum.of(stream);
    }
  }

  private byte[] read(String of) throws IOException {
    try (InputStream stream = jar.getResourceAsStream(of)) {
      if (stream == null) {
        throw missing(of);
      }
      return stream.readAllBytes();
    }
  }

  private static IOException missing(String resource) {
    return new IOException("the jar has no such file: " + resource);
  }

  private static String sha256(byte[] bytes) {
    try {
      return HexFormat.of().formatHex(MessageDigest.getInstance("SHA-256").digest(bytes));
    } catch (NoSuchAlgorithmException e) {
      throw new IllegalStateException("every Java has SHA-256", e);
    }
  }
}
