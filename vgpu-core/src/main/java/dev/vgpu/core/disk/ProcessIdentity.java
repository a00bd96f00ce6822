package dev.vgpu.core.disk;

import static java.nio.charset.StandardCharsets.ISO_8859_1;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.InvalidPathException;
import java.nio.file.NoSuchFileException;
import java.nio.file.Path;
import java.util.Optional;
import java.util.stream.Stream;

/**
 * One process and no later one that has its number. Immutable.
 *
 * @param pid its number
 * @param start when it was started, in the kernel's own unit (field 22 of {@code /proc/PID/stat}),
 *     or in milliseconds where there is no {@code /proc}; 0: not known
 */
public record ProcessIdentity(long pid, long start) {
  private static final Path PROC = Path.of("/proc");
  private static final Path CGROUPS = Path.of("/sys/fs/cgroup");
  private static final String NUMBERS = "\nNSpid:";

  /** What a process is doing. */
  public enum State {
    /** It runs, or could. */
    ALIVE,
    /** It was stopped by a signal or a debugger, or its cgroup is frozen. */
    STOPPED,
    /** It has ended. */
    DEAD
  }

  /** {@return this process} */
  public static ProcessIdentity current() {
    return of(ownPid());
  }

  /**
   * By the last of the numbers that this process has in one namespace after the other, which is the
   * one that it knows itself by. Not by {@link ProcessHandle} where that can be helped: a fresh JVM
   * takes some milliseconds to load what that needs in order to wait for other processes.
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
    int begin = status.indexOf(NUMBERS);
    int end = begin < 0 ? -1 : status.indexOf('\n', begin + 1);
    if (end < 0) {
      return Optional.empty(); // an old kernel, or what only looks like one
    }
    String numbers = status.substring(begin + NUMBERS.length(), end).trim();
    try {
      return Optional.of(Long.parseLong(numbers.substring(numbers.lastIndexOf('\t') + 1)));
    } catch (NumberFormatException e) {
      return Optional.empty();
    }
  }

  /**
   * {@return the process that has this number now} Its start is 0 if there is none.
   *
   * @param pid the number
   */
  public static ProcessIdentity of(long pid) {
    try {
      return new ProcessIdentity(pid, stat(pid).map(Stat::start).orElse(0L));
    } catch (IOException e) {
      return new ProcessIdentity(pid, 0);
    }
  }

  /**
   * {@return a process that this one has started} Its start is 0 if it has ended: another process
   * may have its number by then.
   *
   * @param started it
   */
  public static ProcessIdentity of(Process started) {
    ProcessIdentity found = of(started.pid());
    // In this order: what lives now had its number all the time.
    return started.toHandle().isAlive() ? found : new ProcessIdentity(started.pid(), 0);
  }

  /**
   * {@return what it is doing now} Where that cannot be read, for example because no descriptor is
   * left, a process with this number counts as alive: what is not known is no death.
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
   * Whether a process's cgroup (version 2) is frozen, as that of a paused container.
   *
   * @param process its directory in {@code /proc}
   * @param cgroups where cgroups are mounted, of version 2 alone or beside those of version 1
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
      return false; // it has ended, or there are no cgroups
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

  /** {@return it and its state; for one that is stopped, also what can be done about that} */
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

  record Stat(char state, long start) {}

  /** Nothing if there is no such process. */
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
      byte[] text = Files.readAllBytes(PROC.resolve(Long.toString(pid)).resolve("stat"));
      return parse(new String(text, ISO_8859_1));
    } catch (NoSuchFileException e) {
      return Optional.empty();
    }
  }

  /** The fields behind the name, which may hold spaces and parentheses itself. */
  static Optional<Stat> parse(String text) {
    int nameEnd = text.lastIndexOf(')');
    String[] fields = text.substring(nameEnd + 1).trim().split(" ", -1);
    if (nameEnd < 0 || fields.length < 20 || fields[0].length() != 1) {
      return Optional.empty();
    }
    try {
      return Optional.of(new Stat(fields[0].charAt(0), Long.parseLong(fields[19])));
    } catch (NumberFormatException e) {
      return Optional.empty();
    }
  }

  /** {@return both numbers, for messages} */
  @Override
  public String toString() {
    return "pid=" + pid + " start=" + start;
  }
}
