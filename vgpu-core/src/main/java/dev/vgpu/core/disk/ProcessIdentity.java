package dev.vgpu.core.disk;

import static java.nio.charset.StandardCharsets.ISO_8859_1;

import dev.vgpu.files.ProcessStat;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.InvalidPathException;
import java.nio.file.NoSuchFileException;
import java.nio.file.Path;
import java.nio.file.attribute.UserPrincipal;
import java.nio.file.attribute.UserPrincipalLookupService;
import java.util.Optional;
import java.util.OptionalLong;
import java.util.stream.Stream;

/**
 * One process, distinguished from later processes that reuse its pid. Immutable.
 *
 * @param pid the process id
 * @param start its start time in clock ticks (field 22 of {@code /proc/PID/stat}), or in
 *     milliseconds where there is no {@code /proc}; 0 if unknown
 */
public record ProcessIdentity(long pid, long start) {
  private static final Path PROC = Path.of("/proc");
  private static final Path CGROUPS = Path.of("/sys/fs/cgroup");

  /** The state of a process. */
  public enum State {
    /** Running or runnable. */
    ALIVE,
    /** Stopped by a signal or a debugger, or in a frozen cgroup. */
    STOPPED,
    /** Ended. */
    DEAD
  }

  /** {@return this process} */
  public static ProcessIdentity current() {
    return of(ownPid());
  }

  /**
   * This process's pid in its own namespace: the last entry of {@code NSpid}. Avoids {@link
   * ProcessHandle} where possible, because a fresh JVM takes several milliseconds to load the
   * classes with which it waits for other processes.
   */
  private static long ownPid() {
    try {
      byte[] text = Files.readAllBytes(PROC.resolve("self").resolve("status"));
      return parseOwnPid(new String(text, ISO_8859_1))
          .orElseGet(() -> ProcessHandle.current().pid());
    } catch (IOException e) {
      return ProcessHandle.current().pid();
    }
  }

  static Optional<Long> parseOwnPid(String status) {
    try {
      return numbers(status, "NSpid").map(all -> Long.parseLong(all[all.length - 1]));
    } catch (NumberFormatException e) {
      return Optional.empty();
    }
  }

  /** A line of numbers; empty on an old kernel, or if it is not a real {@code /proc}. */
  private static Optional<String[]> numbers(String status, String name) {
    String field = "\n" + name + ":";
    int begin = status.indexOf(field);
    int end = begin < 0 ? -1 : status.indexOf('\n', begin + 1);
    return end < 0
        ? Optional.empty()
        : Optional.of(status.substring(begin + field.length(), end).trim().split("\t", -1));
  }

  /**
   * {@return the process that has this pid now} If there is none, its start is 0.
   *
   * @param pid the process id
   */
  public static ProcessIdentity of(long pid) {
    try {
      return new ProcessIdentity(pid, stat(pid).map(Stat::start).orElse(0L));
    } catch (IOException e) {
      return new ProcessIdentity(pid, 0);
    }
  }

  /**
   * {@return a process that this one has started} If it has ended, its start is 0, because another
   * process may have reused its pid.
   *
   * @param started the process
   */
  public static ProcessIdentity of(Process started) {
    ProcessIdentity found = of(started.pid());
    // Check after reading: if the process is still alive, its pid was not reused in between.
    return started.toHandle().isAlive() ? found : new ProcessIdentity(started.pid(), 0);
  }

  /**
   * {@return its current state} If the state cannot be read, for example because no file descriptor
   * is left, a process that has this pid counts as alive: a failed read is no proof of death.
   */
  public State state() {
    State seen = seen();
    boolean frozen = seen == State.ALIVE && isFrozen(PROC.resolve(Long.toString(pid)), CGROUPS);
    return frozen ? State.STOPPED : seen;
  }

  private State seen() {
    Optional<Stat> stat;
    try {
      stat = stat(pid);
    } catch (IOException e) {
      return Files.exists(PROC.resolve(Long.toString(pid))) ? State.ALIVE : State.DEAD;
    }
    if (stat.isEmpty() || stat.get().start() != start) {
      return State.DEAD;
    }
    return switch (stat.get().state()) {
      case 'Z', 'X', 'x' -> State.DEAD;
      case 'T', 't' -> State.STOPPED;
      default -> State.ALIVE;
    };
  }

  /**
   * Whether the cgroup (version 2) of a process is frozen, as in a paused container.
   *
   * @param process the process's directory in {@code /proc}
   * @param cgroups the mount point of the cgroups: version 2 alone, or version 1 with {@code
   *     unified}
   */
  static boolean isFrozen(Path process, Path cgroups) {
    try {
      for (String line : Files.readAllLines(process.resolve("cgroup"), ISO_8859_1)) {
        if (line.startsWith("0::/")) {
          Path below = Path.of(line.substring(4));
          return Stream.of(cgroups, cgroups.resolve("unified"))
              .anyMatch(mount -> saysFrozen(mount.resolve(below).resolve("cgroup.events")));
        }
      }
    } catch (IOException | InvalidPathException e) {
      return false; // the process has ended, or there are no cgroups
    }
    return false;
  }

  private static boolean saysFrozen(Path events) {
    try {
      return Files.readAllLines(events, ISO_8859_1).contains("frozen 1");
    } catch (IOException e) {
      return false;
    }
  }

  /** {@return the identity and the state; for a stopped process, also what the user can do} */
  public String described() {
    State is = state();
    String text = this + " state=" + is;
    return is == State.STOPPED
        ? text
            + ": let it go on (kill -CONT "
            + pid
            + ", or thaw its cgroup) or end it (kill -KILL "
            + pid
            + ")"
        : text;
  }

  /** {@return whether it has not ended} */
  public boolean isAlive() {
    return seen() != State.DEAD;
  }

  /**
   * {@return whether it is alive and was started by a user} That is its real user, which stays the
   * same if the program's file is of another one (setuid). True where there is no {@code /proc}.
   * May have to ask a service for the user.
   *
   * @param user the user
   */
  public boolean isOf(UserPrincipal user) {
    if (!Files.isDirectory(PROC.resolve("self"))) {
      return true;
    }
    try {
      Path file = PROC.resolve(Long.toString(pid)).resolve("status");
      Optional<String[]> ids = numbers(Files.readString(file, ISO_8859_1), "Uid");
      UserPrincipalLookupService users = file.getFileSystem().getUserPrincipalLookupService();
      // Alive after reading: the pid was not reused in between.
      return ids.isPresent() && users.lookupPrincipalByName(ids.get()[0]).equals(user) && isAlive();
    } catch (IOException e) {
      return false;
    }
  }

  private record Stat(char state, long start) {}

  /** Empty if there is no such process. */
  private static Optional<Stat> stat(long pid) throws IOException {
    if (!Files.isDirectory(PROC.resolve("self"))) {
      return ProcessHandle.of(pid)
          .filter(ProcessHandle::isAlive)
          .map(
              handle ->
                  new Stat(
                      'R',
                      handle.info().startInstant().map(start -> start.toEpochMilli()).orElse(0L)));
    }
    try {
      ProcessStat stat = ProcessStat.read(PROC.resolve(Long.toString(pid)));
      OptionalLong start = stat.number(ProcessStat.Field.START);
      return start.isEmpty()
          ? Optional.empty()
          : Optional.of(new Stat(stat.state(), start.getAsLong()));
    } catch (NoSuchFileException e) {
      return Optional.empty();
    }
  }

  /** {@return the pid and the start, for messages} */
  @Override
  public String toString() {
    return "pid=" + pid + " start=" + start;
  }
}
