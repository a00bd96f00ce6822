package dev.vgpu.files;

import java.io.IOException;
import java.nio.file.Path;
import java.util.Map;

/**
 * Where the run directory is, through which the processes of a node find each other. Immutable.
 *
 * @param path an absolute path, which need not exist
 * @param origin how it was chosen
 */
public record RunPlace(Path path, Origin origin) {
  /** How a run directory was chosen. */
  public enum Origin {
    /**
     * Set by the pool's options or by {@code VGPU_RUN_DIR}. It is an error if it cannot be used.
     */
    NAMED,
    /**
     * The machine's: root has opened it to a group that this process is in. It is an error if it
     * cannot be used, because a second seat would manage the same GPUs.
     */
    MACHINE,
    /** A default. If it cannot be used, the pool works for this JVM alone. */
    DEFAULT
  }

  /** The machine's directory. Root may open it to a group, with mode 0750. */
  private static final Path OF_THE_MACHINE = Path.of("/run/vgpu");

  /** {@return the run directory of processes with this environment} */
  public static RunPlace of(Map<String, String> environment) {
    return of(environment, OF_THE_MACHINE);
  }

  /** The same for another directory of the machine. */
  static RunPlace of(Map<String, String> environment, Path ofTheMachine) {
    String named = environment.getOrDefault("VGPU_RUN_DIR", "");
    if (!named.isBlank()) {
      return named(Path.of(named));
    }
    if (FileAccess.isForOurGroup(ofTheMachine)) {
      return new RunPlace(ofTheMachine, Origin.MACHINE);
    }
    String session = environment.getOrDefault("XDG_RUNTIME_DIR", "");
    return new RunPlace(
        session.isBlank() ? ofTheMachine : absolute(Path.of(session)).resolve("vgpu"),
        Origin.DEFAULT);
  }

  /** {@return a run directory that somebody has named} */
  public static RunPlace named(Path path) {
    return new RunPlace(absolute(path), Origin.NAMED);
  }

  private static Path absolute(Path path) {
    return path.toAbsolutePath().normalize();
  }

  /**
   * {@return whether a run directory is root's, and this process is another user's} Such a process
   * can only be a client of the seat.
   */
  public static boolean isOfRoot(Path directory) {
    try {
      return ProcessUser.id() != 0 && FileEntry.of(directory).owner() == 0;
    } catch (IOException e) {
      return false; // it does not exist yet, or cannot be used
    }
  }
}
