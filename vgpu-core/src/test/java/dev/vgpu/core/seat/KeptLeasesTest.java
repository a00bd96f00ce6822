package dev.vgpu.core.seat;

import static org.assertj.core.api.Assertions.assertThat;

import java.util.concurrent.CountDownLatch;
import java.util.concurrent.Semaphore;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

@Timeout(60)
class KeptLeasesTest {
  private final Semaphore begun = new Semaphore(0);
  private final Semaphore goesOn = new Semaphore(0);

  private void look() {
    begun.release();
    goesOn.acquireUninterruptibly();
  }

  private static void awaitAll(Desk.Line line) throws InterruptedException {
    CountDownLatch done = new CountDownLatch(1);
    line.add(done::countDown);
    done.await();
  }

  @Test
  void looksThatTakeLongDoNotPileUp() throws InterruptedException {
    try (Desk desk = new Desk("test", 1)) {
      Desk.Line line = desk.new Line(1);
      KeptLeases kept = new KeptLeases(line, this::look, 0);
      kept.lookAgain();
      assertThat(kept.tick(0)).isEqualTo(KeptLeases.EVERY_NS);
      begun.acquire();
      for (int i = 1; i <= 100; i++) {
        kept.lookAgain(); // as the look itself does for each lease that it must keep
        long nowNs = i * KeptLeases.EVERY_NS;
        assertThat(kept.tick(nowNs)).isEqualTo(nowNs + KeptLeases.EVERY_NS);
      }
      assertThat(line.size()).isEqualTo(1);
      goesOn.release();
      awaitAll(line);
      assertThat(kept.tick(101 * KeptLeases.EVERY_NS)).isEqualTo(102 * KeptLeases.EVERY_NS);
      begun.acquire(); // a lease was kept in the meantime, so there is another look
      goesOn.release();
      awaitAll(line);
      assertThat(kept.tick(102 * KeptLeases.EVERY_NS)).isEqualTo(Long.MAX_VALUE);
    }
  }
}
