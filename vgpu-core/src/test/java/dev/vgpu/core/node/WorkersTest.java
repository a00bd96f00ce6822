package dev.vgpu.core.node;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.vgpu.core.ThreadLimit;
import java.util.List;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;

/** The system allows a node one thread and no more. */
class WorkersTest {
  private static final String NO_THREAD = "unable to create native thread: possibly out of memory";

  private final CountDownLatch begins = new CountDownLatch(1);
  private final AtomicInteger made = new AtomicInteger();
  private final Workers workers = new Workers(this::thread);

  private Thread thread(Runnable task) {
    if (made.getAndIncrement() == 0) {
      return new Thread(
          () -> {
            boolean ignored = await(begins);
            task.run();
          });
    }
    return new Thread(task) {
      @Override
      public synchronized void start() {
        throw new OutOfMemoryError(NO_THREAD);
      }
    };
  }

  @AfterEach
  void end() {
    workers.shutdownNow();
  }

  @Test
  void whatGetsNoThreadIsDoneByTheOneThatIsThere() throws Exception {
    begins.countDown();
    CountDownLatch goesOn = new CountDownLatch(1);
    CountDownLatch done = new CountDownLatch(2);
    List<Integer> order = new CopyOnWriteArrayList<>();
    workers.execute(
        () -> {
          boolean ignored = await(goesOn);
        });
    for (int i = 1; i <= 2; i++) {
      int number = i;
      workers.execute(
          () -> {
            order.add(number);
            done.countDown();
          });
    }
    assertThat(order).isEmpty();
    goesOn.countDown();
    assertThat(done.await(20, TimeUnit.SECONDS)).isTrue();
    assertThat(order).containsExactly(1, 2);
  }

  /** The thread is there, and does not wait for tasks yet. */
  @Test
  void aTaskThatComesBeforeTheThreadWaitsIsDone() throws Exception {
    CountDownLatch done = new CountDownLatch(1);
    workers.execute(done::countDown);
    assertThat(done.getCount()).isEqualTo(1);
    begins.countDown();
    assertThat(done.await(20, TimeUnit.SECONDS)).isTrue();
  }

  private static boolean await(CountDownLatch latch) {
    try {
      return latch.await(20, TimeUnit.SECONDS);
    } catch (InterruptedException e) {
      return false;
    }
  }

  @Test
  void onlyTheLackOfThreadsIsSaidToBeOne() {
    assertThat(ThreadLimit.refusal("no pool", new OutOfMemoryError(NO_THREAD)))
        .hasMessage(
            "no pool: the system gives no more threads; raise the limit of this user's processes"
                + " (ulimit -u) or of the container's (pids)");
    OutOfMemoryError heap = new OutOfMemoryError("Java heap space");
    assertThatThrownBy(() -> ThreadLimit.refusal("no pool", heap)).isSameAs(heap);
  }
}
