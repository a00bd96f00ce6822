package dev.vgpu.cli.machine;

import static java.nio.charset.StandardCharsets.UTF_8;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.Optional;
import java.util.stream.Stream;

/**
 * Processor time that the kernel has counted since boot, over all processors of the machine.
 * Immutable.
 *
 * @param busySeconds time in which any program ran
 * @param stolenSeconds time in which the hypervisor ran something else
 * @param allSeconds all time, idle time included
 */
public record ProcessorTime(double busySeconds, double stolenSeconds, double allSeconds) {
  private static final double TICKS_PER_SECOND = 100;
  private static final int IDLE = 3;
  private static final int IO_WAIT = 4;
  private static final int STOLEN = 7;
  private static final int COUNTED = 8;

  /** {@return the current counters; empty if the kernel is not Linux} */
  public static Optional<ProcessorTime> read() {
    try (Stream<String> lines = Files.lines(Path.of("/proc/stat"), UTF_8)) {
      return lines.findFirst().flatMap(ProcessorTime::parse);
    } catch (IOException e) {
      return Optional.empty();
    }
  }

  /**
   * {@return the counters in the first line of {@code /proc/stat}; empty if it has another form}
   *
   * @param line begins with {@code cpu}
   */
  static Optional<ProcessorTime> parse(String line) {
    String[] words = line.strip().split("\\s+");
    if (words.length <= COUNTED || !words[0].equals("cpu")) {
      return Optional.empty();
    }
    try {
      long[] ticks = Arrays.stream(words, 1, 1 + COUNTED).mapToLong(Long::parseLong).toArray();
      double all = Arrays.stream(ticks).sum();
      double busy = all - ticks[IDLE] - ticks[IO_WAIT] - ticks[STOLEN];
      return Optional.of(
          new ProcessorTime(
              busy / TICKS_PER_SECOND, ticks[STOLEN] / TICKS_PER_SECOND, all / TICKS_PER_SECOND));
    } catch (NumberFormatException e) {
      return Optional.empty();
    }
  }

  /**
   * {@return the time counted since an earlier reading}
   *
   * @param before the earlier reading
   */
  public ProcessorTime since(ProcessorTime before) {
    return new ProcessorTime(
        busySeconds - before.busySeconds,
        stolenSeconds - before.stolenSeconds,
        allSeconds - before.allSeconds);
  }
}
