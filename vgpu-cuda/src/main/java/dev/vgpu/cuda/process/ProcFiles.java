package dev.vgpu.cuda.process;

import static java.nio.charset.StandardCharsets.ISO_8859_1;
import static java.nio.charset.StandardCharsets.UTF_8;

import dev.vgpu.files.ProcessStat;
import dev.vgpu.files.ProcessStat.Field;
import java.io.BufferedReader;
import java.io.FileInputStream;
import java.io.IOException;
import java.io.InputStreamReader;
import java.nio.file.DirectoryStream;
import java.nio.file.Files;
import java.nio.file.NoSuchFileException;
import java.nio.file.Path;
import java.util.List;
import java.util.OptionalLong;
import java.util.function.Predicate;
import java.util.stream.Stream;

/** Reads {@code /proc}. Immutable. */
public final class ProcFiles implements ProcessLife {
  private static final long MOST_MAPS_BYTES = 16 << 20;
  private static final int MOST_ENVIRONMENT_BYTES = 2 << 20;
  private static final int MOST_ENDED_TASKS = 256;

  private final Path proc;
  private final long pidNamespace;

  /** Reads {@code proc} instead of {@code /proc}. */
  public ProcFiles(Path proc) {
    this.proc = proc;
    this.pidNamespace = readNamespace(proc.resolve("self/ns/pid"));
  }

  private static long readNamespace(Path link) {
    try {
      String target = Files.readSymbolicLink(link).toString();
      return Long.parseLong(target.replaceAll("\\D", ""));
    } catch (IOException | NumberFormatException e) {
      return 0;
    }
  }

  @Override
  public long pidNamespace() {
    return pidNamespace;
  }

  @Override
  public State state(long pid, long startTime) {
    Path directory = proc.resolve(Long.toString(pid));
    try {
      ProcessStat stat = ProcessStat.read(directory);
      if (stat.number(Field.START).orElse(startTime) != startTime) {
        return State.DEAD;
      }
      if (!hasEnded(stat)) {
        return "Tt".indexOf(stat.state()) >= 0 ? State.STOPPED : State.ALIVE;
      }
      // The main thread has exited; the process may run on with others.
      try (DirectoryStream<Path> tasks = Files.newDirectoryStream(directory.resolve("task"))) {
        int ended = 0;
        for (Path task : tasks) {
          // A debugger can keep exited threads visible. With very many, a later call decides.
          if (!taskHasEnded(task) || ++ended > MOST_ENDED_TASKS) {
            return State.ALIVE;
          }
        }
      }
      return State.DEAD;
    } catch (IOException | java.nio.file.DirectoryIteratorException e) {
      return Files.exists(directory.resolve("stat")) ? State.ALIVE : State.DEAD;
    }
  }

  @Override
  public boolean isHere(long pid) {
    Path process = proc.resolve(Long.toString(pid));
    try {
      Path ignored = Files.readSymbolicLink(process.resolve("exe")); // a kernel thread has none
    } catch (IOException e) {
      return false;
    }
    return readNamespace(process.resolve("ns/pid")) == pidNamespace;
  }

  @Override
  public OptionalLong pidHere(long pid, long startTime) {
    return find(
        process -> isInside(process, pid) && state(number(process), startTime) != State.DEAD);
  }

  /** {@return whether the process is in a nested pid namespace and has this pid there} */
  private static boolean isInside(Path process, long pid) {
    try (Stream<String> lines = Files.lines(process.resolve("status"), ISO_8859_1)) {
      return lines
          .filter(line -> line.startsWith("NSpid:\t"))
          .anyMatch(line -> line.matches("NSpid:\t.*\t" + pid));
    } catch (IOException | java.io.UncheckedIOException e) {
      return false;
    }
  }

  private static boolean taskHasEnded(Path task) {
    try {
      return hasEnded(ProcessStat.read(task));
    } catch (NoSuchFileException e) {
      return true;
    } catch (IOException e) {
      return !Files.exists(task);
    }
  }

  /**
   * A thread becomes a zombie, or disappears, only after it has closed its files. Only then does
   * the driver free what it held; before that, its quota must not be given to others.
   */
  private static boolean hasEnded(ProcessStat stat) {
    return "ZXx".indexOf(stat.state()) >= 0;
  }

  /** {@return the start time of a process; 0 if there is no such process} */
  public long startTime(long pid) {
    try {
      return ProcessStat.read(proc.resolve(Long.toString(pid))).number(Field.START).orElse(0);
    } catch (IOException e) {
      return 0;
    }
  }

  @Override
  public OptionalLong startedWith(List<String> variables) {
    return find(process -> isStartedWith(process, variables));
  }

  private OptionalLong find(Predicate<Path> wanted) {
    // In ascending pid order: a child that a process starts just before it exits is listed later.
    try (DirectoryStream<Path> processes = Files.newDirectoryStream(proc, "[0-9]*")) {
      for (Path process : processes) {
        if (wanted.test(process)) {
          return OptionalLong.of(number(process));
        }
      }
    } catch (IOException | java.nio.file.DirectoryIteratorException | NumberFormatException e) {
      return OptionalLong.empty();
    }
    return OptionalLong.empty();
  }

  private static long number(Path process) {
    return Long.parseLong(process.getFileName().toString());
  }

  @Override
  public boolean isStartedWith(long pid, List<String> variables) {
    return isStartedWith(proc.resolve(Long.toString(pid)), variables);
  }

  /** False for an exited process, which has no environment, or if the environment is unreadable. */
  private static boolean isStartedWith(Path process, List<String> variables) {
    try {
      String all = "\0" + environment(process) + "\0";
      return variables.stream()
          .map(variable -> new String(variable.getBytes(UTF_8), ISO_8859_1))
          .allMatch(variable -> all.contains("\0" + variable + "\0"));
    } catch (IOException e) {
      return false;
    }
  }

  /**
   * {@return the environment that a process was started with, each byte as one character} Only the
   * beginning is read, because a process can make it as long as it likes.
   */
  public static String environment(Path process) throws IOException {
    // Not a FileChannel: an interrupt of the calling thread would close it.
    try (FileInputStream in = new FileInputStream(process.resolve("environ").toFile())) {
      return new String(in.readNBytes(MOST_ENVIRONMENT_BYTES), ISO_8859_1);
    }
  }

  @Override
  public Mapping mapping(long pid, String pathEnd) {
    String deletedEnd = pathEnd + " (deleted)";
    long bytes = 0;
    try (BufferedReader maps =
        new BufferedReader(
            new InputStreamReader(
                new FileInputStream(proc.resolve(pid + "/maps").toFile()), ISO_8859_1))) {
      for (String line = maps.readLine(); line != null; line = maps.readLine()) {
        bytes += line.length();
        if (line.endsWith(pathEnd) || line.endsWith(deletedEnd)) {
          return Mapping.MAPPED;
        }
        if (bytes > MOST_MAPS_BYTES) {
          return Mapping.UNKNOWN;
        }
      }
    } catch (IOException e) {
      return Mapping.UNKNOWN;
    }
    // An exiting process has no memory any more, but may still have the driver's files open.
    return bytes == 0 ? Mapping.UNKNOWN : Mapping.NOT_MAPPED;
  }
}
