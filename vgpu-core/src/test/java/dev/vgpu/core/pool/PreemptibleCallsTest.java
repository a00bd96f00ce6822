package dev.vgpu.core.pool;

import static dev.vgpu.request.PreemptionClass.OFFLINE;
import static dev.vgpu.request.PreemptionClass.ONLINE;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.vgpu.CallOptions;
import dev.vgpu.GpuPool;
import dev.vgpu.PreemptibleCall;
import dev.vgpu.VirtualGpu;
import dev.vgpu.request.MemorySize;
import dev.vgpu.watch.GpuEvent;
import java.io.IOException;
import java.util.Queue;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.FutureTask;
import java.util.concurrent.Semaphore;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;

class PreemptibleCallsTest {
  private final GpuPool pool = Pools.open();
  private final VirtualGpu batch = pool.acquire(Pools.request(OFFLINE).name("batch").build());
  private final VirtualGpu online = pool.acquire(Pools.request(ONLINE).name("online").build());
  private final Queue<GpuEvent> events = new ConcurrentLinkedQueue<>();

  @BeforeEach
  void listen() {
    GpuPool.Listening listening = pool.listen(events::add);
    assertThat(listening).isNotNull();
  }

  @AfterEach
  void close() {
    pool.close();
  }

  /** Runs until it is cancelled or released; counts its attempts and cancellations. */
  private static class Work implements PreemptibleCall<Integer> {
    final Semaphore started = new Semaphore(0);
    final Semaphore end = new Semaphore(0);
    volatile int attempts;
    volatile int cancels;

    @Override
    @SuppressWarnings("NonAtomicVolatileUpdate") // one attempt at a time
    public Integer call() throws Exception {
      attempts++;
      end.drainPermits();
      started.release();
      end.acquire();
      if (cancels >= attempts) {
        throw new IOException("terminated");
      }
      return attempts;
    }

    @Override
    @SuppressWarnings("NonAtomicVolatileUpdate") // at most one per attempt
    public void cancel() {
      cancels++;
      end.release();
    }
  }

  @Test
  void onlineArrivalCancelsAnOfflineCallWhichRunsAgain() throws Exception {
    Work work = new Work();
    FutureTask<Integer> result = CallsTest.start(() -> batch.<Integer>call(work));
    work.started.acquire();
    assertThat(online.<Integer>call(() -> 1)).isEqualTo(1);
    work.started.acquire();
    work.end.release();
    assertThat(result.get()).isEqualTo(2);
    assertThat(work.cancels).isEqualTo(1);
    assertThat(batch.usage().preemptions()).isEqualTo(1);
    Pools.await(() -> events.stream().anyMatch(e -> e instanceof GpuEvent.Preempted));
    GpuEvent.Preempted event =
        events.stream()
            .filter(GpuEvent.Preempted.class::isInstance)
            .map(GpuEvent.Preempted.class::cast)
            .findFirst()
            .orElseThrow();
    assertThat(event.virtualGpu()).isEqualTo(batch.id());
    assertThat(event.by()).isEqualTo(online.id());
    assertThat(event.cancelledCalls()).isEqualTo(1);
  }

  @Test
  void cancelledCallKeepsItsBudgetUntilItHasRun() throws Exception {
    MemorySize quota = MemorySize.ofMebibytes(100);
    Work work = new Work();
    CallOptions all = CallOptions.builder().memory(quota).build();
    FutureTask<Integer> result = CallsTest.start(() -> batch.<Integer>call(work, all));
    work.started.acquire();
    online.run(() -> assertThat(batch.tryReserve(quota)).isEmpty());
    work.started.acquire();
    work.end.release();
    assertThat(result.get()).isEqualTo(2);
    assertThat(batch.tryReserve(quota)).isPresent();
  }

  @Test
  void afterTheBoundOnRetriesACallRunsUncancelled() throws Exception {
    Work work = new Work();
    CallOptions twice = CallOptions.builder().maxPreemptions(2).build();
    FutureTask<Integer> result = CallsTest.start(() -> batch.<Integer>call(work, twice));
    for (int i = 0; i < 2; i++) {
      work.started.acquire();
      online.run(() -> {});
    }
    work.started.acquire();
    FutureTask<Integer> waiting = CallsTest.start(() -> online.<Integer>call(() -> 1));
    Pools.await(() -> online.usage().waiting() == 1);
    work.end.release();
    assertThat(result.get()).isEqualTo(3);
    assertThat(waiting.get()).isEqualTo(1);
    assertThat(work.cancels).isEqualTo(2);
  }

  @Test
  void failureOfAnAttemptThatWasNotCancelledIsTheCallers() {
    IOException broken = new IOException("broken");
    PreemptibleCall<Integer> failing =
        new PreemptibleCall<>() {
          @Override
          public Integer call() throws IOException {
            throw broken;
          }

          @Override
          public void cancel() {}
        };
    assertThatThrownBy(() -> batch.call(failing)).isSameAs(broken);
    assertThat(batch.usage().running()).isZero();
  }

  @Test
  void interruptOfTheCallersThreadIsNotRepeatedAway() throws Exception {
    Work work = new Work();
    FutureTask<Integer> result = new FutureTask<>(() -> batch.<Integer>call(work));
    Thread thread = new Thread(result);
    thread.start();
    work.started.acquire();
    thread.interrupt();
    assertThatThrownBy(result::get).hasCauseInstanceOf(InterruptedException.class);
    assertThat(batch.usage().running()).isZero();
  }

  @Test
  void resultOfAnAttemptThatEndedInSpiteOfItsCancelCounts() throws Exception {
    Work deaf =
        new Work() {
          @Override
          public Integer call() throws Exception {
            started.release();
            end.acquire();
            return 42;
          }
        };
    FutureTask<Integer> result = CallsTest.start(() -> batch.<Integer>call(deaf));
    deaf.started.acquire();
    online.run(() -> {});
    assertThat(result.get()).isEqualTo(42);
    assertThat(deaf.cancels).isEqualTo(1);
  }

  @Test
  void cancelThatThrowsIsReportedAndEndsCancelling() throws Exception {
    Work work =
        new Work() {
          @Override
          public void cancel() {
            throw new IllegalStateException("cannot");
          }
        };
    FutureTask<Integer> result = CallsTest.start(() -> batch.<Integer>call(work));
    work.started.acquire();
    FutureTask<Integer> waiting = CallsTest.start(() -> online.<Integer>call(() -> 1));
    Pools.await(() -> events.stream().anyMatch(e -> e instanceof GpuEvent.CancelFailed));
    work.end.release();
    assertThat(result.get()).isEqualTo(1);
    assertThat(waiting.get()).isEqualTo(1);
  }

  @Test
  void cancelThatNeverEndsHoldsUpNobody() throws Exception {
    CountDownLatch never = new CountDownLatch(1);
    Work work =
        new Work() {
          @Override
          public void cancel() {
            end.release();
            try {
              never.await();
            } catch (InterruptedException e) {
              Thread.currentThread().interrupt();
            }
          }
        };
    FutureTask<Integer> result = CallsTest.start(() -> batch.<Integer>call(work));
    work.started.acquire();
    assertThat(online.<Integer>call(() -> 1)).isEqualTo(1);
    assertThat(result.get()).isEqualTo(1);
    Pools.await(
        () ->
            events.stream()
                .anyMatch(
                    e ->
                        e instanceof GpuEvent.CancelFailed failed
                            && failed.reason().contains("has not returned")));
    never.countDown();
  }
}
