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
 * Sends the signals that ask this process to end to a program instead; those that come before the
 * program is there are kept for it. What a terminal sends it sends to the program itself, which is
 * in the same process group: that is not sent twice. Safe for use by several threads.
 */
public final class SignalForwarder {
  private static final int STAT_PGRP = 2;
  private static final int STAT_TPGID = 5;

  private final List<EndSignal> early = new ArrayList<>();
  private final CountDownLatch unheard = new CountDownLatch(1);
  private @Nullable Process program;

  private SignalForwarder() {}

  /** {@return a forwarder; from now on this process does not end by these signals} */
  public static SignalForwarder install() {
    SignalForwarder forwarder = new SignalForwarder();
    for (EndSignal signal : EndSignal.values()) {
      signal.handle(() -> forwarder.arrived(signal));
    }
    return forwarder;
  }

  /**
   * Names the program.
   *
   * @param program which gets what came already, and what will come
   */
  public synchronized void forwardTo(Process program) {
    this.program = requireNonNull(program, "program");
    early.forEach(signal -> send(signal, program));
    early.clear();
  }

  /**
   * Waits for a signal that comes when the program has ended.
   *
   * @param atMost for how long
   * @return whether one has come
   * @throws InterruptedException if this thread is interrupted meanwhile
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
      // Java sends only SIGTERM and SIGKILL. The shell's own: a bare machine has no such program.
      new ProcessBuilder("/bin/sh", "-c", "kill -" + signal.name() + " " + program.pid())
          .redirectErrorStream(true)
          .redirectOutput(ProcessBuilder.Redirect.DISCARD)
          .start();
    } catch (IOException e) {
      program.destroy();
    }
  }

  /** Whether this process's group is the one that its terminal sends Ctrl-C to. */
  private static boolean isInForeground() {
    try {
      return isInForeground(Files.readString(Path.of("/proc/self/stat"), UTF_8));
    } catch (IOException e) {
      return false;
    }
  }

  /** The fields behind the name, which is in parentheses and may hold anything. */
  static boolean isInForeground(String stat) {
    String[] fields = stat.substring(stat.lastIndexOf(')') + 1).strip().split(" ", -1);
    return fields.length > STAT_TPGID && fields[STAT_PGRP].equals(fields[STAT_TPGID]);
  }
}
