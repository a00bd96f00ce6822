package dev.vgpu.cli.process;

import static java.nio.charset.StandardCharsets.ISO_8859_1;
import static java.util.Objects.requireNonNull;

import dev.vgpu.files.ProcessStat;
import dev.vgpu.files.ProcessStat.Field;
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
 * the program starts are kept for it. A signal that the terminal, or the shell when its terminal
 * goes away, sends to the whole process group reaches the program directly, and is not forwarded as
 * well. Safe for use by several threads.
 */
public final class SignalForwarder {
  private static final String UPTIME = "/proc/uptime";
  private static final String NONE = "0";

  /** A signal that arrived before the program was known, and when, in ticks since the boot. */
  private record Early(EndSignal signal, boolean isOfGroup, long atTicks) {}

  private final String atFirst = stat("self");
  private final List<Early> early = new ArrayList<>();
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
    String its = early.isEmpty() ? "" : stat(Long.toString(program.pid()));
    for (Early each : early) {
      if (!hadReached(each.isOfGroup(), each.atTicks(), its)) {
        send(each.signal(), program);
      }
    }
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
    boolean isOfGroup = isOfGroup(signal, atFirst, stat("self"));
    if (program == null) {
      early.add(new Early(signal, isOfGroup, nowTicks()));
    } else if (!program.isAlive()) {
      unheard.countDown();
    } else if (!isOfGroup) {
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

  /**
   * Whether a signal went to this process's whole group. The terminal sends SIGINT to the group in
   * its foreground. When a terminal goes away, the shell sends SIGHUP to the groups of its jobs,
   * but the kernel sends it to the leader of the session alone.
   *
   * @param signal the signal
   * @param before what /proc said of this process at first
   * @param now what it says now
   */
  static boolean isOfGroup(EndSignal signal, String before, String now) {
    ProcessStat is = ProcessStat.of(now);
    if (is.text(Field.FOREGROUND_GROUP).isEmpty()) {
      return false;
    }
    return switch (signal) {
      case INT -> is.text(Field.GROUP).equals(is.text(Field.FOREGROUND_GROUP));
      case HUP -> {
        String had = ProcessStat.of(before).text(Field.TERMINAL);
        boolean isLeader = now.startsWith(is.text(Field.SESSION) + " ");
        boolean hadOne = !had.isEmpty() && !had.equals(NONE);
        yield hadOne && is.text(Field.TERMINAL).equals(NONE) && !isLeader;
      }
      case TERM -> false;
    };
  }

  /** {@return whether a program got an early signal itself: it was there, and in the group} */
  static boolean hadReached(boolean isOfGroup, long atTicks, String program) {
    return isOfGroup && atTicks > startTicks(program);
  }

  /** {@return when a process began; the latest moment if it is gone} */
  static long startTicks(String stat) {
    return ProcessStat.of(stat).number(Field.START).orElse(Long.MAX_VALUE);
  }

  private static String stat(String process) {
    return text("/proc/" + process + "/stat");
  }

  /** The kernel shows hundredths of a second, which is also its unit of a process's start. */
  private static long nowTicks() {
    String seconds = text(UPTIME).split(" ", -1)[0].replace(".", "");
    return seconds.isEmpty() ? 0 : Long.parseLong(seconds);
  }

  private static String text(String file) {
    try {
      return Files.readString(Path.of(file), ISO_8859_1);
    } catch (IOException e) {
      return "";
    }
  }
}
