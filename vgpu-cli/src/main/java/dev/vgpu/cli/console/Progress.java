package dev.vgpu.cli.console;

import static java.util.Objects.requireNonNull;

import dev.vgpu.cli.time.NanoClock;
import java.time.Duration;

/**
 * Reports progress on standard error. On a terminal it overwrites one line as time passes;
 * elsewhere it writes one line for each step. Confined to one thread.
 */
public final class Progress implements AutoCloseable {
  private static final long REFRESH_NS = 250_000_000;
  private static final String CLEAR_LINE = "\r\u001b[K";

  private final Console console;
  private final NanoClock clock;
  private final int steps;
  private int step;
  private String title = "";
  private String shown = "";

  /**
   * Creates a progress report.
   *
   * @param console where to report
   * @param clock the clock
   * @param steps how many steps there will be
   */
  public Progress(Console console, NanoClock clock, int steps) {
    this.console = requireNonNull(console, "console");
    this.clock = requireNonNull(clock, "clock");
    this.steps = steps;
  }

  /**
   * Begins the next step.
   *
   * @param title what it does
   */
  public void begin(String title) {
    step++;
    this.title = requireNonNull(title, "title");
    if (console.errIsTerminal()) {
      draw("");
    } else {
      console.err().println(line(""));
    }
  }

  /**
   * Prints a line that stays on the screen.
   *
   * @param text one line
   */
  public void say(String text) {
    close();
    console.err().println(text);
  }

  /**
   * Waits, and shows how much time has passed.
   *
   * @param length how long
   * @throws InterruptedException if this thread is interrupted while it waits
   */
  public void await(Duration length) throws InterruptedException {
    long startNs = clock.nowNs();
    long endNs = startNs + length.toNanos();
    for (long nowNs = startNs; nowNs < endNs; nowNs = clock.nowNs()) {
      tick(nowNs - startNs, length);
      clock.sleepUntil(Math.min(endNs, nowNs + REFRESH_NS));
    }
  }

  /**
   * Shows how much time has passed, on a terminal.
   *
   * @param elapsedNs the time that has passed
   * @param length how long the step takes in all
   */
  public void tick(long elapsedNs, Duration length) {
    if (console.errIsTerminal()) {
      draw("  " + elapsedNs / 1_000_000_000 + " of " + Math.round(length.toMillis() / 1e3) + " s");
    }
  }

  /** Removes the overwritten line, if there is one. */
  @Override
  public void close() {
    if (!shown.isEmpty()) {
      console.errDrawn().print(CLEAR_LINE);
      console.errDrawn().flush();
      shown = "";
    }
  }

  private void draw(String suffix) {
    String line = line(suffix);
    if (!line.equals(shown)) {
      console.errDrawn().print(CLEAR_LINE + HarmlessText.oneLine(line));
      console.errDrawn().flush();
      shown = line;
    }
  }

  private String line(String suffix) {
    return "[" + step + "/" + steps + "] " + title + suffix;
  }
}
