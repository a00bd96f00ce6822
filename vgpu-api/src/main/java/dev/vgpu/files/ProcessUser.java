package dev.vgpu.files;

import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.LinkOption;
import java.nio.file.Path;

/** The user on whose behalf this process acts. */
public final class ProcessUser {
  private static final int UNKNOWN = -1;
  private static volatile int id = UNKNOWN;
  private static volatile int ofRootDirectory = UNKNOWN;

  private ProcessUser() {}

  /**
   * {@return the effective user id}
   *
   * @throws IOException if {@code /proc} does not tell
   */
  public static int id() throws IOException {
    if (id == UNKNOWN) {
      id = read();
    }
    return id;
  }

  /**
   * Does not use the owner of /proc/self: for some processes that is root, whichever user they run
   * as.
   */
  private static int read() throws IOException {
    String status = Files.readString(Path.of("/proc/self/status"), StandardCharsets.ISO_8859_1);
    int line = status.indexOf("\nUid:");
    String[] words = status.substring(line + 1).split("\\s+", 4); // Uid: real effective
    try {
      return Integer.parseUnsignedInt(words[2]);
    } catch (NumberFormatException | ArrayIndexOutOfBoundsException e) {
      throw new IOException("/proc/self/status does not tell the user of this process", e);
    }
  }

  /** The owner of the root directory: root, except in a user namespace that does not map root. */
  static int ofRootDirectory() throws IOException {
    if (ofRootDirectory == UNKNOWN) {
      ofRootDirectory =
          (Integer) Files.getAttribute(Path.of("/"), "unix:uid", LinkOption.NOFOLLOW_LINKS);
    }
    return ofRootDirectory;
  }
}
