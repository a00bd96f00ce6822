package dev.vgpu.cli.console;

import static java.nio.charset.StandardCharsets.US_ASCII;

import java.io.File;
import java.io.IOException;
import java.util.Map;
import java.util.concurrent.TimeUnit;

/**
 * The width of the terminal, at least 80 columns: {@code COLUMNS}, or otherwise what {@code stty}
 * reports, because shells do not export that variable.
 */
final class TerminalWidth {
  static final int LEAST = 80;
  private static final int MOST = 1000;
  private static final long TIMEOUT_SECONDS = 1;
  private static final File TERMINAL = new File("/dev/tty");

  private TerminalWidth() {}

  static int of(Map<String, String> environment) {
    int told = number(environment.getOrDefault("COLUMNS", ""));
    return within(told > 0 ? told : asked());
  }

  static int within(int columns) {
    return Math.max(LEAST, Math.min(MOST, columns));
  }

  /** Parses {@code 50 132}: rows, then columns. */
  private static int asked() {
    Process stty;
    try {
      stty = new ProcessBuilder("stty", "size").redirectInput(TERMINAL).start();
    } catch (IOException e) {
      return LEAST; // no stty, or no controlling terminal
    }
    try {
      if (!stty.waitFor(TIMEOUT_SECONDS, TimeUnit.SECONDS)) {
        return LEAST;
      }
      String said = new String(stty.getInputStream().readAllBytes(), US_ASCII).strip();
      return number(said.substring(said.indexOf(' ') + 1));
    } catch (IOException e) {
      return LEAST;
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
      return LEAST;
    } finally {
      stty.destroyForcibly();
    }
  }

  private static int number(String text) {
    try {
      return Integer.parseInt(text);
    } catch (NumberFormatException e) {
      return 0;
    }
  }
}
