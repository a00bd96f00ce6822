package dev.vgpu.bench.harness;

import java.io.IOException;
import java.io.UncheckedIOException;

/** Sends signals to processes. */
public final class Signals {
  private Signals() {}

  /**
   * Sends one.
   *
   * @param pid the process
   * @param signal its name, without SIG
   */
  public static void send(long pid, String signal) {
    try {
      Process kill =
          new ProcessBuilder("sh", "-c", "kill -" + signal + " " + pid)
              .redirectErrorStream(true)
              .redirectOutput(ProcessBuilder.Redirect.DISCARD)
              .start();
      kill.waitFor();
    } catch (IOException e) {
      throw new UncheckedIOException("cannot run kill", e);
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
    }
  }
}
