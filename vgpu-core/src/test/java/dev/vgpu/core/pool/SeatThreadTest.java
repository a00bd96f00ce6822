package dev.vgpu.core.pool;

import static dev.vgpu.PreemptionClass.NEARLINE;
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
  /** Long beside what the steps of the test take; where they take longer, the test proves less. */
  private static final Duration TURN = Duration.ofMillis(500);

  /** The system's, which can stop the seat's thread as it reads it. */
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

    @SuppressWarnings("NonAtomicVolatileUpdate") // the seat's thread alone, once it is asked
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

    /** Asks for a stop at the second read: after its first it has said until when it sleeps. */
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
   * The thread has said that it sleeps until the end of a turn; before it sleeps, that turn ends
   * early and nothing is due. The next turn's end, which is later, must wake it all the same.
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
      clock.stopped.await(); // the end of the first turn is due, and the thread is about to sleep
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
