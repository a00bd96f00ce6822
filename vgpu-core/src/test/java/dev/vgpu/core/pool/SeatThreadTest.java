package dev.vgpu.core.pool;

import static dev.vgpu.request.PreemptionClass.NEARLINE;
import static org.assertj.core.api.Assertions.assertThat;

import dev.vgpu.GpuPool;
import dev.vgpu.GpuPoolOptions;
import dev.vgpu.GpuSettings;
import dev.vgpu.GpuTurn;
import dev.vgpu.VirtualGpu;
import dev.vgpu.core.NanoClock;
import dev.vgpu.core.discovery.Discovery;
import java.time.Duration;
import java.time.Instant;
import java.util.List;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.FutureTask;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

class SeatThreadTest {
  /** Long compared with the test's own steps; if they take longer, the test proves less. */
  private static final Duration TURN = Duration.ofMillis(500);

  /** The system's clock, which can stop the seat's thread when it reads the time. */
  private static final class StoppingClock implements NanoClock {
    final CountDownLatch stopped = new CountDownLatch(1);
    final CountDownLatch goOn = new CountDownLatch(1);
    volatile Thread seatThread;
    volatile boolean wentOn;
    private volatile int readsUntilStop;

    @Override
    public long nanoTime() {
      if (Thread.currentThread().getName().equals("vgpu-seat")) {
        seatThread = Thread.currentThread();
        stopIfAsked();
      }
      return NanoClock.SYSTEM.nanoTime();
    }

    @SuppressWarnings("NonAtomicVolatileUpdate") // only the seat's thread, once asked
    private void stopIfAsked() {
      if (readsUntilStop > 0 && --readsUntilStop == 0) {
        stopped.countDown();
        try {
          goOn.await();
        } catch (InterruptedException e) {
          Thread.currentThread().interrupt();
        }
        wentOn = true;
      }
    }

    /** Stops the thread at its second read: by then it has announced until when it sleeps. */
    void askToStop() {
      readsUntilStop = 2;
    }

    boolean isAsleep() {
      Thread thread = seatThread;
      return thread != null
          && (thread.getState() == Thread.State.WAITING
              || thread.getState() == Thread.State.TIMED_WAITING);
    }

    @Override
    public Instant now() {
      return NanoClock.SYSTEM.now();
    }
  }

  /**
   * The thread has announced that it sleeps until the end of a turn. Before it sleeps, that turn
   * ends early and nothing is due. The end of the next turn, which is later, must still wake it.
   */
  @Test
  @Timeout(20)
  void deadlineThatMovesAwayAndComesBackIsKept() throws Exception {
    StoppingClock clock = new StoppingClock();
    GpuPoolOptions options =
        GpuPoolOptions.builder()
            .scope(GpuPoolOptions.Scope.THIS_JVM)
            .gpus(Pools.gpus(1))
            .gpuSettings(
                GpuSettings.builder()
                    .shortestTurn(TURN)
                    .longestTurn(TURN)
                    .idleLinger(Duration.ZERO)
                    .build())
            .build();
    try (GpuPool pool = NodeRegistry.open(options, new Discovery(List.of()), clock)) {
      VirtualGpu one = pool.acquire(Pools.request(NEARLINE).build());
      VirtualGpu other = pool.acquire(Pools.request(NEARLINE).build());
      GpuTurn first = one.enter();
      Pools.await(clock::isAsleep);
      clock.askToStop();
      FutureTask<GpuTurn> second = CallsTest.start(other::enter);
      clock.stopped.await(); // the first turn is due to end, and the thread is about to sleep
      first.close();
      GpuTurn held = second.get(); // it is alone, so nothing is due
      clock.goOn.countDown();
      Pools.await(() -> clock.wentOn && clock.isAsleep());
      FutureTask<GpuTurn> third = CallsTest.start(one::enter);
      Pools.await(held::isYieldRequested); // the end of the second turn
      held.close();
      third.get().close();
      assertThat(one.usage().running()).isZero();
    } finally {
      clock.goOn.countDown();
    }
  }
}
