package dev.vgpu.files;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.Optional;

/**
 * The directory for unpacked libraries: the usual one, or one in the user's cache if the usual one
 * is mounted {@code noexec}, as {@code /run} is on some systems. Immutable.
 */
public final class LibraryPlace {
  private static final int MOUNT_POINT = 4;
  private static final int OPTIONS = 5;

  private final Path cache;
  private final List<String> mounts;

  /**
   * Creates one.
   *
   * @param environment the variables that name the cache directory
   * @param mounts the lines of {@code /proc/self/mountinfo}
   */
  LibraryPlace(Map<String, String> environment, List<String> mounts) {
    this.cache =
        set(environment, "XDG_CACHE_HOME")
            .or(() -> set(environment, "HOME").map(home -> home.resolve(".cache")))
            .orElse(Path.of("/var/cache"));
    this.mounts = List.copyOf(mounts);
  }

  /**
   * {@return the place for this process}
   *
   * @param environment the variables that name the cache directory
   */
  public static LibraryPlace ofThisProcess(Map<String, String> environment) {
    try {
      return new LibraryPlace(environment, Files.readAllLines(Path.of("/proc/self/mountinfo")));
    } catch (IOException e) {
      return new LibraryPlace(environment, List.of());
    }
  }

  private static Optional<Path> set(Map<String, String> environment, String name) {
    return Optional.ofNullable(environment.get(name))
        .filter(text -> text.startsWith("/"))
        .map(Path::of);
  }

  /**
   * {@return the directory for libraries}
   *
   * @param usual the directory to use if libraries can be loaded from it
   */
  public Path in(Path usual) {
    Path directory = usual.toAbsolutePath();
    return allowsExecution(directory) ? directory : cache.resolve("vgpu").resolve("lib");
  }

  /** If two mounts have the same mount point, the later one is on top. */
  private boolean allowsExecution(Path path) {
    int longest = -1;
    boolean allowed = true;
    String text = path.toString();
    for (String line : mounts) {
      String[] fields = line.split(" ", -1);
      String point = fields.length > OPTIONS ? unescape(fields[MOUNT_POINT]) : "";
      if (point.isEmpty() || !text.startsWith(point)) {
        continue; // skips nearly all lines without creating a Path
      }
      Path at = Path.of(point);
      if (path.startsWith(at) && at.getNameCount() >= longest) {
        longest = at.getNameCount();
        allowed = !Arrays.asList(fields[OPTIONS].split(",", -1)).contains("noexec");
      }
    }
    return allowed;
  }

  private static String unescape(String text) {
    return text.indexOf('\\') < 0
        ? text
        : text.replace("\\040", " ").replace("\\011", "\t").replace("\\134", "\\");
  }
}
