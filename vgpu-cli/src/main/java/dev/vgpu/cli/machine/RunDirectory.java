package dev.vgpu.cli.machine;

import dev.vgpu.files.ProcessStat;
import dev.vgpu.files.RunPlace;
import dev.vgpu.files.TrustedFiles;
import java.io.IOException;
import java.nio.file.Path;
import java.util.Map;
import java.util.OptionalLong;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

/**
 * The directory through which this user's processes find the seat, and the process that holds it.
 *
 * @param path the directory, which need not exist
 */
public record RunDirectory(Path path) {
  private static final Pattern HOLDER = Pattern.compile("pid=(\\d{1,18}) start=(\\d{1,18})\\s*");
  private static final int MOST_HOLDER_BYTES = 256;

  /** {@return the directory that the environment names, or the default one} */
  public static RunDirectory of(Map<String, String> environment) {
    return new RunDirectory(RunPlace.of(environment).path());
  }

  /**
   * {@return the live process that holds the seat; empty if there is none} Reads the file beside
   * the lock file. A process that may hold the lock must not open the lock file itself, because
   * closing it would release the lock.
   */
  public OptionalLong seatHolder() {
    try {
      Matcher matcher =
          HOLDER.matcher(TrustedFiles.readText(path.resolve("seat.holder"), MOST_HOLDER_BYTES));
      if (matcher.matches()) {
        long pid = Long.parseLong(matcher.group(1));
        return startOf(pid).equals(matcher.group(2)) ? OptionalLong.of(pid) : OptionalLong.empty();
      }
    } catch (IOException e) {
      // There is no seat, or this process may not read it.
    }
    return OptionalLong.empty();
  }

  /**
   * The start time of a process, as the kernel counts it. A process id may be reused; an id with
   * its start time is unique.
   */
  private static String startOf(long pid) throws IOException {
    return ProcessStat.read(Path.of("/proc", Long.toString(pid))).text(ProcessStat.Field.START);
  }

  /** {@return the process that holds the seat; empty if there is none, or if it is this process} */
  public OptionalLong otherSeatHolder() {
    OptionalLong holder = seatHolder();
    return holder.isPresent() && holder.getAsLong() == ProcessHandle.current().pid()
        ? OptionalLong.empty()
        : holder;
  }

  /** {@return the directory and the holder of the seat, for people} */
  public String description() {
    OptionalLong holder = otherSeatHolder();
    return path
        + ": "
        + (holder.isPresent()
            ? "held by pid " + holder.getAsLong() + nameOf(holder.getAsLong())
            : "free; the next process "
                + (isOfRoot() ? "of root " : "")
                + "that opens the GPUs takes it");
  }

  /** {@return whether only root's processes can hold the seat, and this is another user's} */
  public boolean isOfRoot() {
    return RunPlace.isOfRoot(path);
  }

  private static String nameOf(long pid) {
    return ProcessHandle.of(pid)
        .flatMap(process -> process.info().command())
        .map(command -> " (" + command + ")")
        .orElse("");
  }
}
