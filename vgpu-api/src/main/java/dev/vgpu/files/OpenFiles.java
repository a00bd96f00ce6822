package dev.vgpu.files;

import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;

/** The files and sockets that this process may have open at the same time. */
public final class OpenFiles {
  private static final String LIMIT = "Max open files";

  /** What others make this process open may come to one in so many, of each kind of opener. */
  private static final int PARTS = 4;

  private OpenFiles() {}

  /**
   * {@return how many of them one kind of others may make this process open: processes that
   * connect, programs that attach, leases} All kinds together leave the host a part for itself.
   *
   * @param most as many are enough, however many this process may have
   */
  public static int part(int most) {
    return (int) Math.min(most, limit() / PARTS);
  }

  /** Read anew: the host may raise it. */
  private static long limit() {
    try {
      for (String line :
          Files.readAllLines(Path.of("/proc/self/limits"), StandardCharsets.ISO_8859_1)) {
        if (line.startsWith(LIMIT)) {
          return Long.parseLong(line.substring(LIMIT.length()).trim().split(" ", 2)[0]);
        }
      }
    } catch (IOException | NumberFormatException e) {
      return Long.MAX_VALUE; // not known, or unlimited
    }
    return Long.MAX_VALUE;
  }
}
