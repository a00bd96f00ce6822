package dev.vgpu.core.seat;

import java.util.concurrent.CountDownLatch;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** The threads that run the requests of the seat's clients. */
@Timeout(60)
class DeskTest {
  private static final int TIMES = 50_000;

  @Test
  void clientsThatLeaveWhileTheyAreServedCostNoThread() throws Exception {
    try (Desk desk = new Desk("test", 1)) {
      Desk.Line line = desk.new Line(1);
      for (int i = 0; i < TIMES; i++) {
        line.add(() -> {});
        line.clear();
      }
      CountDownLatch served = new CountDownLatch(1);
      desk.new Line(1).add(served::countDown);
      served.await();
    }
  }
}
