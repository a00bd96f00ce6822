package dev.vgpu.files;

import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;

/** The limit on open files and sockets of this process. */
public final class OpenFiles {
  private static final String LIMIT = "Max open files";

  /** Each kind of opener may use one part in this many. */
  private static final int PARTS = 4;

  private OpenFiles() {}

  /**
   * {@return how many files one kind of opener may make this process open} Kinds are processes that
   * connect, programs that attach, and leases. All kinds together leave a part for the host
   * program.
   *
   * @param most an upper bound, however high the limit is
   */
  public static int part(int most) {
    return (int) Math.min(most, limit() / PARTS);
  }

  /** Read on each call, because the host program may raise the limit. */
  private static long limit() {
    try {
      for (String line :
          Files.readAllLines(Path.of("/proc/self/limits"), StandardCharsets.ISO_8859_1)) {
        if (line.startsWith(LIMIT)) {
          return Long.parseLong(line.substring(LIMIT.length()).trim().split(" ", 2)[0]);
        }
      }
    } catch (IOException | NumberFormatException e) {
      return Long.MAX_VALUE; // unknown or unlimited
    }
    return Long.MAX_VALUE;
  }
}
