package dev.vgpu.cli;

import static java.nio.charset.StandardCharsets.UTF_8;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Map;
import java.util.Optional;
import java.util.OptionalLong;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

/**
 * Where this user's processes meet, and who holds the seat there.
 *
 * @param path the directory, which need not be there
 */
record RunDirectory(Path path) {
  private static final Pattern PID = Pattern.compile("(?:^|\\bpid\\s*=\\s*|\\s)(\\d+)");

  static RunDirectory of(Map<String, String> environment) {
    return new RunDirectory(
        set(environment, "VGPU_RUN_DIR")
            .or(() -> set(environment, "XDG_RUNTIME_DIR").map(xdg -> xdg.resolve("vgpu")))
            .orElse(Path.of("/run/vgpu")));
  }

  private static Optional<Path> set(Map<String, String> environment, String name) {
    return Optional.ofNullable(environment.get(name)).filter(text -> !text.isBlank()).map(Path::of);
  }

  /** {@return the process that holds the seat; empty if none that lives does} */
  OptionalLong seatHolder() {
    try {
      // Never the lock's own file: the kernel drops a process's lock when it closes that anywhere.
      Matcher matcher = PID.matcher(Files.readString(path.resolve("seat.holder"), UTF_8));
      if (matcher.find()) {
        long pid = Long.parseLong(matcher.group(1));
        return ProcessHandle.of(pid).filter(ProcessHandle::isAlive).isPresent()
            ? OptionalLong.of(pid)
            : OptionalLong.empty();
      }
    } catch (IOException | NumberFormatException e) {
      // No seat, or one that we may not look at.
    }
    return OptionalLong.empty();
  }

  /** {@return the same, if it is not this process, which has just opened the GPUs} */
  OptionalLong otherSeatHolder() {
    OptionalLong holder = seatHolder();
    return holder.isPresent() && holder.getAsLong() == ProcessHandle.current().pid()
        ? OptionalLong.empty()
        : holder;
  }

  /** {@return where, and held by whom, for people} */
  String description() {
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
