package dev.vgpu.core.seat;

import static org.assertj.core.api.Assertions.assertThat;

import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** The threads that run the requests of the seat's clients. */
@Timeout(60)
class DeskTest {
  private static final int TIMES = 200_000;

  @Test
  void clientsThatLeaveWhileTheyAreServedCostNoThread() throws Exception {
    try (Desk desk = new Desk("test", 1)) {
      Desk.Line busy = desk.new Line(1); // keeps the thread from sleeping
      for (int i = 0; i < TIMES; i++) {
        Desk.Line line = desk.new Line(1);
        for (int j = busy.size(); j < 4; j++) {
          busy.add(() -> {});
        }
        line.add(() -> {});
        for (int j = 0; j < i % 100; j++) {
          Thread.onSpinWait(); // the thread is somewhere else each time
        }
        line.clear();
      }
      CountDownLatch served = new CountDownLatch(1);
      desk.new Line(1).add(served::countDown);
      assertThat(served.await(30, TimeUnit.SECONDS)).isTrue();
    }
  }

  @Test
  void aClientWithManyRequestsDelaysAnotherByOneOfThem() throws Exception {
    try (Desk desk = new Desk("test", 1)) {
      CountDownLatch begun = new CountDownLatch(1);
      CountDownLatch goes = new CountDownLatch(1);
      AtomicInteger done = new AtomicInteger();
      List<Desk.Line> floods = List.of(desk.new Line(1), desk.new Line(8));
      for (Desk.Line flood : floods) {
        flood.add(
            () -> {
              begun.countDown();
              await(goes);
            });
        for (int i = 0; i < 1_000; i++) {
          flood.add(done::incrementAndGet);
        }
      }
      begun.await();
      CompletableFuture<Integer> served = new CompletableFuture<>();
      desk.new Line(1).add(() -> served.complete(done.get()));
      goes.countDown();
      assertThat(served.get(30, TimeUnit.SECONDS)).isLessThanOrEqualTo(floods.size());
    }
  }

  private static void await(CountDownLatch latch) {
    try {
      latch.await();
    } catch (InterruptedException e) {
      throw new AssertionError(e);
    }
  }

  private static final class Unprintable extends RuntimeException {
    private static final long serialVersionUID = 1L;

    @Override
    public String getMessage() {
      throw new IllegalStateException("as a test wants it");
    }
  }

  @Test
  void aFailureThatCannotEvenBeLoggedCostsNoThread() throws Exception {
    try (Desk desk = new Desk("test", 1)) {
      Desk.Line line = desk.new Line(1);
      line.add(
          () -> {
            throw new Unprintable();
          });
      CountDownLatch served = new CountDownLatch(1);
      line.add(served::countDown);
      assertThat(served.await(30, TimeUnit.SECONDS)).isTrue();
    }
  }
}
