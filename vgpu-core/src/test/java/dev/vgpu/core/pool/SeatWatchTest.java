package dev.vgpu.core.pool;

import static org.assertj.core.api.Assertions.assertThat;

import dev.vgpu.GpuPoolOptions;
import dev.vgpu.core.NanoClock;
import dev.vgpu.core.seat.LinkLoop;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.locks.LockSupport;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** When the seat is given up because nobody is served. */
@Timeout(60)
class SeatWatchTest {
  private static final long MILLI_NS = 1_000_000;

  /** {@return how many looks it took until the seat was given up} */
  private static int looksOfASeatThatHangs(long waitedNs) throws Exception {
    Node node =
        new Node(PoolSettings.from(GpuPoolOptions.defaults()), NanoClock.SYSTEM, ended -> {});
    CountDownLatch goesOn = new CountDownLatch(1);
    CompletableFuture<String> givenUp = new CompletableFuture<>();
    AtomicInteger looks = new AtomicInteger();
    try (LinkLoop loop = new LinkLoop(NanoClock.SYSTEM)) {
      loop.perform(
          () -> {
            try {
              goesOn.await();
            } catch (InterruptedException e) {
              throw new AssertionError(e);
            }
          });
      SeatWatch watch =
          SeatWatch.start(
              node,
              loop,
              givenUp::complete,
              () -> {
                looks.incrementAndGet();
                return waitedNs;
              });
      try {
        assertThat(givenUp.get(50, TimeUnit.SECONDS)).contains("have not been served for");
      } finally {
        watch.close();
        goesOn.countDown();
      }
    }
    return looks.get();
  }

  @Test
  void oneThatHangsIsGivenUpSoon() throws Exception {
    assertThat(looksOfASeatThatHangs(0)).isEqualTo(4);
  }

  @Test
  void oneThatIsLateIsGivenMoreTime() throws Exception {
    assertThat(looksOfASeatThatHangs(40 * MILLI_NS)).isEqualTo(100);
  }

  @Test
  void waitsForAProcessorAreSeen() throws Exception {
    ProcessorWaits waits = new ProcessorWaits();
    AtomicBoolean ends = new AtomicBoolean();
    for (int i = 0; i < 2 + 2 * Runtime.getRuntime().availableProcessors(); i++) {
      Thread busy =
          new Thread(
              () -> {
                while (!ends.get()) {
                  Thread.onSpinWait();
                }
              });
      busy.setDaemon(true);
      busy.start();
    }
    try {
      waits.mostSinceLastNs();
      long most = 0;
      while (most < 10 * MILLI_NS) { // the test's limit ends it where none is seen
        LockSupport.parkNanos(50 * MILLI_NS);
        most = waits.mostSinceLastNs();
      }
    } finally {
      ends.set(true);
    }
  }
}
