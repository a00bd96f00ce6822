package dev.vgpu.cli.run;

import dev.vgpu.GpuPool;
import dev.vgpu.cli.console.Console;
import dev.vgpu.cli.machine.RunDirectory;
import dev.vgpu.cli.process.SignalForwarder;
import dev.vgpu.watch.GpuLease;
import java.time.Duration;
import java.util.List;

/**
 * Holds the seat for processes that outlive their program, as long as no other process is known
 * that would take the seat over. Without a seat, their next work on the GPU would be refused.
 */
final class SeatStay {
  private static final Duration SOON = Duration.ofMillis(10);
  private static final Duration LATER = Duration.ofMillis(200);

  /** No report about processes that end with the program, or shortly afterwards. */
  private static final int LOOKS_IN_SILENCE = 50;

  private final GpuPool pool;
  private final RunDirectory directory;
  private final Console console;

  SeatStay(GpuPool pool, RunDirectory directory, Console console) {
    this.pool = pool;
    this.directory = directory;
    this.console = console;
  }

  /** Returns when no process of the virtual GPU needs this seat any more, or on a signal. */
  void whileNeeded(String virtualGpu, SignalForwarder signals) throws InterruptedException {
    for (int looks = 0; isNeeded(virtualGpu); looks++) {
      if (looks == LOOKS_IN_SILENCE) {
        console
            .err()
            .println(
                "vgpu: the program has ended, but processes that it started still run; vgpu"
                    + " holds the seat for them (not needed beside 'vgpu serve'): "
                    + virtualGpu);
        console.err().flush();
      }
      if (signals.awaitUnheard(looks < LOOKS_IN_SILENCE ? SOON : LATER)) {
        return;
      }
    }
  }

  private boolean isNeeded(String virtualGpu) {
    long self = ProcessHandle.current().pid();
    if (directory.seatHolder().orElse(0) != self) {
      return false;
    }
    List<GpuLease> leases = pool.leases();
    boolean othersStay =
        leases.stream().anyMatch(lease -> lease.pid() != self && isAlive(lease.pid()));
    boolean goesOn = leases.stream().anyMatch(lease -> lease.id().equals(virtualGpu));
    return goesOn && !othersStay;
  }

  private static boolean isAlive(long pid) {
    return ProcessHandle.of(pid).map(ProcessHandle::isAlive).orElse(false);
  }
}
