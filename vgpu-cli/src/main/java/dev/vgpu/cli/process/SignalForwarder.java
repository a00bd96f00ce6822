package dev.vgpu.cli.process;

import static java.nio.charset.StandardCharsets.UTF_8;
import static java.util.Objects.requireNonNull;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import org.jspecify.annotations.Nullable;

/**
 * Forwards the signals that ask this process to terminate to a program. Signals that arrive before
 * the program starts are kept for it. A signal that the terminal sends to the whole foreground
 * process group reaches the program directly, and is not forwarded as well. Safe for use by several
 * threads.
 */
public final class SignalForwarder {
  private static final int STAT_PGRP = 2;
  private static final int STAT_TPGID = 5;

  private final List<EndSignal> early = new ArrayList<>();
  private final CountDownLatch unheard = new CountDownLatch(1);
  private @Nullable Process program;

  private SignalForwarder() {}

  /** {@return a forwarder; from now on these signals do not terminate this process} */
  public static SignalForwarder install() {
    SignalForwarder forwarder = new SignalForwarder();
    for (EndSignal signal : EndSignal.values()) {
      signal.handle(() -> forwarder.arrived(signal));
    }
    return forwarder;
  }

  /**
   * Sets the program, and sends it the signals that have arrived before.
   *
   * @param program receives the earlier and all later signals
   */
  public synchronized void forwardTo(Process program) {
    this.program = requireNonNull(program, "program");
    early.forEach(signal -> send(signal, program));
    early.clear();
  }

  /**
   * Waits for a signal that arrives after the program has ended.
   *
   * @param atMost how long to wait
   * @return whether one has arrived
   * @throws InterruptedException if this thread is interrupted while it waits
   */
  public boolean awaitUnheard(Duration atMost) throws InterruptedException {
    return unheard.await(atMost.toMillis(), TimeUnit.MILLISECONDS);
  }

  private synchronized void arrived(EndSignal signal) {
    if (program == null) {
      early.add(signal);
    } else if (!program.isAlive()) {
      unheard.countDown();
    } else if (!signal.isOfTerminal() || !isInForeground()) {
      send(signal, program);
    }
  }

  private static void send(EndSignal signal, Process program) {
    if (!program.isAlive()) {
      return;
    }
    try {
      // Java can send only SIGTERM and SIGKILL. Uses the shell's built-in kill, because a minimal
      // system has no kill program.
      new ProcessBuilder("/bin/sh", "-c", "kill -" + signal.name() + " " + program.pid())
          .redirectErrorStream(true)
          .redirectOutput(ProcessBuilder.Redirect.DISCARD)
          .start();
    } catch (IOException e) {
      program.destroy();
    }
  }

  /** Whether this process belongs to its terminal's foreground process group. */
  private static boolean isInForeground() {
    try {
      return isInForeground(Files.readString(Path.of("/proc/self/stat"), UTF_8));
    } catch (IOException e) {
      return false;
    }
  }

  /** Parses the fields after the name, which is in parentheses and may contain any character. */
  static boolean isInForeground(String stat) {
    String[] fields = stat.substring(stat.lastIndexOf(')') + 1).strip().split(" ", -1);
    return fields.length > STAT_TPGID && fields[STAT_PGRP].equals(fields[STAT_TPGID]);
  }
}
