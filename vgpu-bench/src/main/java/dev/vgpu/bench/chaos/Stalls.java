package dev.vgpu.bench.chaos;

import java.util.List;
import java.util.Locale;

/**
 * Looks in the seats' logs for a GPU that was stalled. A scheduler that recovers from that hides an
 * error of its own, unless its process was stopped or ran late. Confined to one thread.
 */
final class Stalls {
  private static final String SAID = "a GPU was stalled and has recovered";

  /** A scheduler that runs this late may ask for a report before the report could arrive. */
  private static final double EXCUSED_MS = 50;

  private int read;
  private int excused;
  private String last = "";

  /**
   * Looks at what was logged since the last look.
   *
   * @param log all that was logged
   * @param lateMs how late the seats ran since the last look, in milliseconds
   */
  void look(String log, double lateMs) {
    int end = log.lastIndexOf('\n') + 1;
    List<String> lines =
        log.substring(Math.min(read, end), end).lines().filter(l -> l.contains(SAID)).toList();
    read = end;
    if (lines.isEmpty()) {
      return;
    }
    last = lines.get(lines.size() - 1);
    if (lateMs < EXCUSED_MS) {
      throw new ChaosFailure(
          String.format(
              Locale.ROOT,
              "a seat that was late by %.1f ms stalled its GPU %d times: %s",
              lateMs,
              lines.size(),
              last));
    }
    excused += lines.size();
  }

  /** {@return how many stalls were put down to the seats' lateness, and the last one} */
  String excused() {
    return excused == 0 ? "0" : excused + ", last: " + last;
  }
}
