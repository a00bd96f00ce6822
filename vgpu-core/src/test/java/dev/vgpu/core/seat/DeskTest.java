package dev.vgpu.core.seat;

import static org.assertj.core.api.Assertions.assertThat;

import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
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
}
