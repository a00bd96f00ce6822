package dev.vgpu.cli.process;

import dev.vgpu.cli.console.ExitCodes;
import dev.vgpu.cli.console.UserException;
import java.io.File;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import org.jspecify.annotations.Nullable;

/** Finds a program before it is started, so that nothing is acquired for a missing program. */
public final class ProgramFile {
  private static final String DEFAULT_PATH = "/usr/local/bin:/usr/bin:/bin";

  private ProgramFile() {}

  /**
   * {@return the program's file}
   *
   * @param name the name as typed: a path, or a name to be looked up
   * @param searchPath the value of {@code PATH}, or null
   * @throws UserException if there is none (127), or none that is executable (126)
   */
  public static Path find(String name, @Nullable String searchPath) throws UserException {
    List<Path> there = new ArrayList<>();
    for (Path candidate : candidates(name, searchPath)) {
      if (Files.isRegularFile(candidate) && Files.isExecutable(candidate)) {
        return candidate;
      }
      if (Files.exists(candidate)) {
        there.add(candidate);
      }
    }
    if (there.isEmpty()) {
      throw new UserException("there is no program " + name, null, ExitCodes.NOT_FOUND);
    }
    Path file = there.get(0);
    throw new UserException(
        file + (Files.isDirectory(file) ? " is a directory" : " may not be executed"),
        null,
        ExitCodes.NOT_EXECUTABLE);
  }

  private static List<Path> candidates(String name, @Nullable String searchPath) {
    if (name.isEmpty()) {
      return List.of();
    }
    if (name.contains(File.separator)) {
      return List.of(Path.of(name));
    }
    List<Path> candidates = new ArrayList<>();
    String path = searchPath == null ? DEFAULT_PATH : searchPath;
    for (String directory : path.split(File.pathSeparator, -1)) {
      candidates.add(Path.of(directory.isEmpty() ? "." : directory).resolve(name));
    }
    // A directory of that name is not meant.
    candidates.removeIf(Files::isDirectory);
    return candidates;
  }
}
