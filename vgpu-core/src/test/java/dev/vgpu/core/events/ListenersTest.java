package dev.vgpu.core.events;

import static dev.vgpu.request.PreemptionClass.OFFLINE;
import static dev.vgpu.request.PreemptionClass.ONLINE;
import static org.assertj.core.api.Assertions.assertThat;

import dev.vgpu.GpuPool;
import dev.vgpu.VirtualGpu;
import dev.vgpu.core.NanoClock;
import dev.vgpu.core.pool.Pools;
import dev.vgpu.watch.GpuEvent;
import java.time.Instant;
import java.util.ArrayList;
import java.util.List;
import java.util.Queue;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.atomic.AtomicInteger;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;

/** Slow listeners, and storms of events. */
class ListenersTest {
  /** Blocks a listener until the test releases it. */
  private final CountDownLatch blocked = new CountDownLatch(1);

  private final CountDownLatch blocks = new CountDownLatch(1);
  private final ExecutorService threads = Executors.newCachedThreadPool();
  private long nowNs = 1;

  @AfterEach
  void end() {
    blocked.countDown();
    threads.shutdownNow();
  }

  private final class Clock implements NanoClock {
    @Override
    public long nanoTime() {
      return nowNs;
    }

    @Override
    public Instant now() {
      return Instant.ofEpochSecond(1_800_000_000, nowNs);
    }
  }

  private void block() {
    blocks.countDown();
    try {
      blocked.await();
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
    }
  }

  @Test
  void listenerThatBlocksDelaysNeitherTurnsNorLeasesNorOtherListeners() throws Exception {
    Queue<GpuEvent> told = new ConcurrentLinkedQueue<>();
    try (GpuPool pool = Pools.open()) {
      GpuPool.Listening stuck = pool.listen(event -> block());
      GpuPool.Listening listening = pool.listen(told::add);
      AtomicInteger calls = new AtomicInteger();
      for (int i = 0; i < 100; i++) {
        try (VirtualGpu online = pool.acquire(Pools.share(ONLINE, 50));
            VirtualGpu offline = pool.acquire(Pools.share(OFFLINE, 50))) {
          online.run(calls::incrementAndGet);
          offline.run(calls::incrementAndGet);
        }
      }
      assertThat(calls).hasValue(200);
      blocks.await();
      Pools.await(() -> told.size() == 400); // one Acquired and one Closed each
      assertThat(pool.leases()).isEmpty();
      assertThat(pool.recentEvents()).hasSize(256);
      listening.close();
      stuck.close();
    } // the pool closes although a listener is blocked
  }

  @Test
  void listenerThatBlocksIsToldTheRestInOrderAndTheNewestAreDropped() throws Exception {
    Listeners listeners = new Listeners(new Clock(), threads);
    List<String> late = new ArrayList<>();
    CountDownLatch all = new CountDownLatch(1);
    Runnable ignored =
        listeners.listen(
            event -> {
              block();
              late.add(event.virtualGpu());
              if (late.size() == 10_001) {
                all.countDown();
              }
            });
    listeners.publish(at -> new GpuEvent.Leaked(at, "first"));
    blocks.await();
    for (int i = 0; i < 50_000; i++) {
      String name = "gpu-" + i;
      listeners.publish(at -> new GpuEvent.Leaked(at, name));
    }
    blocked.countDown();
    all.await();
    assertThat(late).startsWith("first", "gpu-0", "gpu-1").endsWith("gpu-9998", "gpu-9999");
    assertThat(listeners.recent()).hasSize(256);
    assertThat(listeners.recent().get(255).virtualGpu()).isEqualTo("gpu-49999");
  }

  /** A thousand preemptions a second become a few events a second, and all are counted. */
  @Test
  void stormOfPreemptionsIsToldTogether() {
    Listeners listeners = new Listeners(new Clock(), threads);
    Preemptions preemptions = new Preemptions(listeners, new Clock());
    for (int second = 0; second < 5; second++) {
      for (int i = 0; i < 1_000; i++) {
        preemptions.add("batch-1", "online-2", 1);
        nowNs += 1_000_000;
      }
      preemptions.tell();
    }
    preemptions.add("other-3", "online-2", 0);
    assertThat(listeners.recent()).hasSize(7);
    assertThat(((GpuEvent.Preempted) listeners.recent().get(0)).times()).isEqualTo(1);
    assertThat(listeners.recent().get(6).virtualGpu()).isEqualTo("other-3");
    long times = 0;
    long cancelled = 0;
    for (GpuEvent event : listeners.recent().subList(0, 6)) {
      times += ((GpuEvent.Preempted) event).times();
      cancelled += ((GpuEvent.Preempted) event).cancelledCalls();
    }
    assertThat(times).isEqualTo(5_000);
    assertThat(cancelled).isEqualTo(5_000);
    nowNs += 2_000_000_000L;
    preemptions.tell();
    preemptions.tell();
    preemptions.add("batch-1", "online-2", 0);
    assertThat(listeners.recent()).hasSize(8); // published at once again after a quiet second
  }
}
