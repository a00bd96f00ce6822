package dev.vgpu.cuda;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.Optional;

/**
 * Where the hook is unpacked to: in the run directory, or among the cached files where that is
 * mounted so that no library in it can be loaded, as {@code /run} is on some systems. Immutable.
 */
final class LibraryPlace {
  private static final int MOUNT_POINT = 4;
  private static final int OPTIONS = 5;

  private final Path cache;
  private final List<String> mounts;

  /**
   * Makes one.
   *
   * @param environment names the cache
   * @param mounts the lines of {@code /proc/self/mountinfo}
   */
  LibraryPlace(Map<String, String> environment, List<String> mounts) {
    this.cache =
        set(environment, "XDG_CACHE_HOME")
            .or(() -> set(environment, "HOME").map(home -> home.resolve(".cache")))
            .orElse(Path.of("/var/cache"));
    this.mounts = List.copyOf(mounts);
  }

  static LibraryPlace ofThisProcess(Map<String, String> environment) {
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

  /** The directory for libraries of a run directory's tenants. */
  Path in(Path runDirectory) {
    Path usual = runDirectory.resolve("lib").toAbsolutePath();
    return allowsExecution(usual) ? usual : cache.resolve("vgpu").resolve("lib");
  }

  /** Of two mounts at one place, the later one lies on top. */
  private boolean allowsExecution(Path path) {
    int longest = -1;
    boolean allowed = true;
    for (String line : mounts) {
      String[] fields = line.split(" ", -1);
      if (fields.length > OPTIONS) {
        Path point = Path.of(fields[MOUNT_POINT].replace("\\040", " "));
        if (path.startsWith(point) && point.getNameCount() >= longest) {
          longest = point.getNameCount();
          allowed = !Arrays.asList(fields[OPTIONS].split(",", -1)).contains("noexec");
        }
      }
    }
    return allowed;
  }
}
