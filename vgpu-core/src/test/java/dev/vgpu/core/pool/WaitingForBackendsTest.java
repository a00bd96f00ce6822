package dev.vgpu.core.pool;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.vgpu.GpuCapacityException;
import dev.vgpu.GpuPool;
import dev.vgpu.VgpuException;
import dev.vgpu.VirtualGpu;
import dev.vgpu.core.book.LeaseTable;
import dev.vgpu.request.PreemptionClass;
import dev.vgpu.request.VirtualGpuRequest;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.FutureTask;
import java.util.concurrent.locks.LockSupport;
import org.junit.jupiter.api.Test;

/** Which requests get what a backend has made or given back. */
class WaitingForBackendsTest extends SlowBackends {

  /** Acquires on another thread, and returns when the request waits at the seat. */
  private static FutureTask<VirtualGpu> acquiring(GpuPool pool, VirtualGpuRequest request)
      throws InterruptedException {
    FutureTask<VirtualGpu> waiting = new FutureTask<>(() -> pool.acquire(request));
    Thread thread = new Thread(waiting);
    thread.setDaemon(true);
    thread.start();
    Pools.await(
        () -> {
          Object blocker = LockSupport.getBlocker(thread);
          return blocker instanceof LeaseTable
              || String.valueOf(blocker).startsWith(CountDownLatch.class.getName());
        });
    assertThat(pool.states()).isNotEmpty(); // answered after what was asked before
    return waiting;
  }

  private VirtualGpuRequest part(int mebibytes, PreemptionClass of) {
    return part(mebibytes).toBuilder().preemptionClass(of).build();
  }

  @Test
  void anUrgentRequestIsServedBeforeOneThatCameLater() throws Exception {
    for (GpuPool pool : List.of(holder, client)) {
      Hold hold = hold();
      VirtualGpu gpu = pool.acquire(part(900));
      space.beforeClose = hold;
      FutureTask<Integer> closes = closing(gpu);
      hold.come.await();
      FutureTask<VirtualGpu> urgent = acquiring(pool, part(800, PreemptionClass.ONLINE));
      FutureTask<Optional<VirtualGpu>> later =
          CallsTest.start(() -> pool.tryAcquire(part(700, PreemptionClass.OFFLINE), LONG));
      othersAreServed();
      hold.goes.countDown();
      assertThat(closes.get()).isZero();
      VirtualGpu got = urgent.get();
      assertThat(later.isDone()).isFalse();
      got.close();
      later.get().orElseThrow().close();
      awaitGone(got.id());
      awaitGone(later.get().orElseThrow().id());
    }
  }

  @Test
  void whatWaitsToBeGivenBackIsWaitedFor() throws Exception {
    for (GpuPool pool : List.of(holder, client)) {
      Hold hold = hold();
      VirtualGpu first = pool.acquire(part(100));
      VirtualGpu second = pool.acquire(part(800));
      space.beforeClose = hold;
      FutureTask<Integer> closes = closing(first);
      hold.come.await();
      FutureTask<Integer> closesToo = closing(second);
      othersAreServed();
      FutureTask<VirtualGpu> large = acquiring(pool, part(900));
      othersAreServed();
      assertThat(large.isDone()).isFalse();
      hold.goes.countDown();
      assertThat(closes.get() + closesToo.get()).isZero();
      large.get().close();
      awaitGone(large.get().id());
      awaitGone(first.id());
      awaitGone(second.id());
    }
    assertThat(space.mostWorking).hasValue(1);
  }

  @Test
  void aRequestThatCannotBeDecidedDoesNotKeepTheOthersWaiting() throws Exception {
    for (GpuPool pool : List.of(holder, client)) {
      Hold hold = hold();
      VirtualGpu gpu = pool.acquire(part(900));
      space.beforeClose = hold;
      FutureTask<Integer> closes = closing(gpu);
      hold.come.await();
      FutureTask<VirtualGpu> broken = acquiring(pool, part(300));
      FutureTask<VirtualGpu> whole = acquiring(pool, part(200));
      FutureTask<Optional<VirtualGpu>> waits =
          CallsTest.start(() -> pool.tryAcquire(part(400), LONG));
      othersAreServed();
      space.beforeLack =
          request -> {
            if (request.memory().equals(part(300).memory())) {
              throw new IllegalStateException("the driver is out of its mind");
            }
          };
      hold.goes.countDown();
      assertThatThrownBy(broken::get).hasMessageContaining("out of its mind");
      assertThat(closes.get()).isZero();
      space.beforeLack = request -> {};
      whole.get().close();
      waits.get().orElseThrow().close();
      awaitGone(whole.get().id());
      awaitGone(waits.get().orElseThrow().id());
    }
  }

  @Test
  void aRequestThatIsGivenUpIsForgotten() throws Exception {
    GpuPool other = open();
    Hold hold = hold();
    VirtualGpu gpu = holder.acquire(part(900));
    space.beforeClose = hold;
    FutureTask<Integer> closes = closing(gpu);
    hold.come.await();
    FutureTask<VirtualGpu> request = acquiring(other, part(800));
    other.close();
    assertThatThrownBy(request::get).hasMessageContaining("the pool was closed");
    othersAreServed();
    hold.goes.countDown();
    assertThat(closes.get()).isZero();
    assertThat(space.prepared).containsExactly(gpu.id());
    client.acquire(part(900)).close();
  }

  @Test
  void movesThatFailLeaveThePartsInUse() throws Exception {
    VirtualGpu gpu = client.acquire(part(100));
    space.lack = Optional.of("no part is free");
    space.moves =
        mayMove -> {
          throw new VgpuException("the device said no");
        };
    assertThatThrownBy(() -> client.makeRoom(part(900))).hasMessageContaining("said no");
    space.lack = Optional.empty();
    assertThat(gpu.environment()).containsEntry("PART", "7");
    assertThatThrownBy(() -> client.acquire(part(950))).isInstanceOf(GpuCapacityException.class);
    Map<String, String> next = client.acquire(part(200)).environment();
    assertThat(next).containsEntry("PART", "7");
  }

  private static FutureTask<Integer> closing(VirtualGpu gpu) {
    return CallsTest.start(
        () -> {
          gpu.close();
          return 0;
        });
  }
}
