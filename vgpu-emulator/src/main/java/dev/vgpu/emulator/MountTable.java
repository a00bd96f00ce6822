package dev.vgpu.emulator;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.List;

/**
 * What is mounted where, as {@code /proc/self/mountinfo} says. Some systems mount {@code /run} so
 * that nothing in it can be executed, and so no library in it loaded. Immutable.
 */
final class MountTable {
  private static final int MOUNT_POINT = 4;
  private static final int OPTIONS = 5;

  private final List<String> lines;

  MountTable(List<String> lines) {
    this.lines = List.copyOf(lines);
  }

  /** {@return that of this process; empty if it cannot be read} */
  static MountTable ofThisProcess() {
    try {
      return new MountTable(Files.readAllLines(Path.of("/proc/self/mountinfo")));
    } catch (IOException e) {
      return new MountTable(List.of());
    }
  }

  /** {@return whether a file there could be executed, as far as its mount is concerned} */
  boolean allowsExecution(Path path) {
    int longest = -1;
    boolean allowed = true;
    String text = path.toString();
    for (String line : lines) {
      String[] fields = line.split(" ", -1);
      if (fields.length <= OPTIONS) {
        continue;
      }
      String pointText = unescape(fields[MOUNT_POINT]);
      if (!text.startsWith(pointText)) {
        continue; // of the many lines nearly all: quicker than to make a path of each
      }
      Path point = Path.of(pointText);
      // Of two mounts at the same place, the later one lies on top.
      if (path.startsWith(point) && point.getNameCount() >= longest) {
        longest = point.getNameCount();
        allowed = !Arrays.asList(fields[OPTIONS].split(",", -1)).contains("noexec");
      }
    }
    return allowed;
  }

  private static String unescape(String text) {
    if (text.indexOf('\\') < 0) {
      return text;
    }
    return text.replace("\\040", " ").replace("\\011", "\t").replace("\\134", "\\");
  }
}
