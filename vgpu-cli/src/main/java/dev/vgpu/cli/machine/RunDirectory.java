package dev.vgpu.cli.machine;

import static java.nio.charset.StandardCharsets.UTF_8;

import dev.vgpu.files.TrustedFiles;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Map;
import java.util.Optional;
import java.util.OptionalLong;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

/**
 * The directory where this user's processes find the seat, and the process that holds it.
 *
 * @param path the directory, which need not be there
 */
public record RunDirectory(Path path) {
  private static final Pattern HOLDER = Pattern.compile("pid=(\\d{1,18}) start=(\\d{1,18})\\s*");
  // Of the fields behind the name in /proc/PID/stat: the 22nd of all.
  private static final int STAT_START = 19;
  private static final int MOST_HOLDER_BYTES = 256;

  /** {@return the directory that the environment names, or the usual one} */
  public static RunDirectory of(Map<String, String> environment) {
    return new RunDirectory(
        set(environment, "VGPU_RUN_DIR")
            .or(() -> set(environment, "XDG_RUNTIME_DIR").map(xdg -> xdg.resolve("vgpu")))
            .orElse(Path.of("/run/vgpu")));
  }

  private static Optional<Path> set(Map<String, String> environment, String name) {
    return Optional.ofNullable(environment.get(name)).filter(text -> !text.isBlank()).map(Path::of);
  }

  /**
   * {@return the process that holds the seat; empty if none that lives does} Reads the file beside
   * the lock: the lock's own must not be opened by a process that may hold it, because closing it
   * would drop the lock.
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
      // No seat, or one that we may not look at.
    }
    return OptionalLong.empty();
  }

  /** When a process was started, as the kernel counts it; a number may come again, this not. */
  private static String startOf(long pid) throws IOException {
    String stat = Files.readString(Path.of("/proc", Long.toString(pid), "stat"), UTF_8);
    String[] fields = stat.substring(stat.lastIndexOf(')') + 1).strip().split(" ", -1);
    return fields.length > STAT_START ? fields[STAT_START] : "";
  }

  /** {@return the process that holds the seat; empty if there is none, or if it is this process} */
  public OptionalLong otherSeatHolder() {
    OptionalLong holder = seatHolder();
    return holder.isPresent() && holder.getAsLong() == ProcessHandle.current().pid()
        ? OptionalLong.empty()
        : holder;
  }

  /** {@return the directory and the seat's holder, for people} */
  public String description() {
    OptionalLong holder = otherSeatHolder();
    return path
        + ": "
        + (holder.isPresent()
            ? "held by pid " + holder.getAsLong() + nameOf(holder.getAsLong())
            : "free; the next process that opens the GPUs takes it");
  }

  private static String nameOf(long pid) {
    return ProcessHandle.of(pid)
        .flatMap(process -> process.info().command())
        .map(command -> " (" + command + ")")
        .orElse("");
  }
}
