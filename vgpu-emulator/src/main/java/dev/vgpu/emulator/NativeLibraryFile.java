package dev.vgpu.emulator;

import dev.vgpu.VgpuException;
import java.io.IOException;
import java.io.InputStream;
import java.net.URL;
import java.net.URLConnection;
import java.nio.charset.StandardCharsets;
import java.nio.file.FileAlreadyExistsException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardCopyOption;
import java.nio.file.attribute.PosixFilePermissions;
import java.security.MessageDigest;
import java.security.NoSuchAlgorithmException;
import java.util.Arrays;
import java.util.HexFormat;
import java.util.Objects;
import org.jspecify.annotations.Nullable;

/**
 * A native library of this jar, as a file. It is unpacked to {@code DIRECTORY/SHA-256/NAME} when
 * first asked for: written under another name, checked against the checksum written at build time,
 * then moved into place in one step. So several processes may do this at once, and one that dies
 * leaves nothing that another would take for the library. Safe for use by several threads.
 */
final class NativeLibraryFile {
  private static final String RESOURCES = "/META-INF/native/linux-x86_64/";

  private final String name;
  private final Path directory;
  private @Nullable Path unpacked;

  NativeLibraryFile(String name, Path directory) {
    this.name = Objects.requireNonNull(name, "name");
    this.directory = Objects.requireNonNull(directory, "directory");
  }

  /**
   * {@return the file}
   *
   * @throws VgpuException if it cannot be written there, or the jar is damaged
   */
  synchronized Path path() {
    Path found = unpacked;
    if (found == null || !Files.isRegularFile(found)) {
      found = unpack();
      unpacked = found;
    }
    return found;
  }

  private Path unpack() {
    try {
      String checksum = new String(resource(name + ".sha256"), StandardCharsets.US_ASCII).trim();
      Path target = directory.resolve(checksum).resolve(name);
      // It appears there whole or not at all, in a directory for its owner only, so its length is
      // enough: its sum would cost a JVM's start 10 ms, and to inflate it some more.
      if (Files.isRegularFile(target) && Files.size(target) == length(name)) {
        return target;
      }
      byte[] library = resource(name);
      String found = sha256(library);
      if (!checksum.equals(found)) {
        throw new VgpuException(
            "the native library in the jar is damaged: name="
                + name
                + " sha256="
                + found
                + " expected="
                + checksum);
      }
      write(library, target);
      return target;
    } catch (IOException e) {
      throw new VgpuException(
          "cannot unpack a native library (no permission, or no space?): name="
              + name
              + " directory="
              + directory
              + " reason="
              + e,
          e);
    }
  }

  /** As the jar tells it, without inflating; what it does not tell is counted. */
  private static long length(String name) throws IOException {
    URL url = NativeLibraryFile.class.getResource(RESOURCES + name);
    if (url == null) {
      throw missing(name);
    }
    URLConnection connection = url.openConnection();
    connection.setUseCaches(false); // it would keep the jar open for good
    try (InputStream stream = connection.getInputStream()) {
      long told = connection.getContentLengthLong();
      return told >= 0 ? told : stream.readAllBytes().length;
    }
  }

  private static VgpuException missing(String name) {
    return new VgpuException("the jar has no such native library: name=" + name);
  }

  private static byte[] resource(String name) throws IOException {
    try (InputStream stream = NativeLibraryFile.class.getResourceAsStream(RESOURCES + name)) {
      if (stream == null) {
        throw missing(name);
      }
      return stream.readAllBytes();
    }
  }

  private static void write(byte[] library, Path target) throws IOException {
    Path parent = Objects.requireNonNull(target.getParent(), "parent");
    Files.createDirectories(
        parent, PosixFilePermissions.asFileAttribute(PosixFilePermissions.fromString("rwx------")));
    Path fresh = Files.createTempFile(parent, ".unpacking-", "");
    try {
      Files.write(fresh, library);
      if (!Arrays.equals(Files.readAllBytes(fresh), library)) {
        throw new IOException("what was written reads differently: file=" + fresh);
      }
      Files.setPosixFilePermissions(fresh, PosixFilePermissions.fromString("r-xr-xr-x"));
      Files.move(
          fresh, target, StandardCopyOption.ATOMIC_MOVE, StandardCopyOption.REPLACE_EXISTING);
    } catch (FileAlreadyExistsException e) {
      throw new IOException("another process has put something else there: file=" + target, e);
    } finally {
      Files.deleteIfExists(fresh);
    }
  }

  private static String sha256(byte[] bytes) {
    try {
      return HexFormat.of().formatHex(MessageDigest.getInstance("SHA-256").digest(bytes));
    } catch (NoSuchAlgorithmException e) {
      throw new IllegalStateException("every Java has SHA-256", e);
    }
  }
}
