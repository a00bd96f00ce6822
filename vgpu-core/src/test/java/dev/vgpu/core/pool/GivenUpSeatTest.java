package dev.vgpu.core.pool;

import static dev.vgpu.request.PreemptionClass.NEARLINE;
import static org.assertj.core.api.Assertions.assertThat;

import dev.vgpu.GpuPool;
import dev.vgpu.VirtualGpu;
import dev.vgpu.core.NanoClock;
import dev.vgpu.request.Capabilities;
import dev.vgpu.request.VirtualGpuRequest;
import dev.vgpu.watch.GpuLease;
import java.nio.file.Files;
import java.util.concurrent.FutureTask;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.Test;

/** A process gives the seat up while something is under way; only the next holder decides then. */
class GivenUpSeatTest extends SlowBackends {
  private static final long OTHER = 1; // a process that lives as long as the machine
  private static final long A_FEW_SECONDS_NS = 4_000_000_000L;

  private void giveUp() throws InterruptedException {
    hook.hangs = true; // as if the holder did not serve any more
    Pools.await(() -> hook.opened == 2);
    hook.hangs = false;
  }

  /** A program's virtual GPU, for which the backend is open. */
  private VirtualGpu prepared() {
    VirtualGpu gpu = holder.acquire(program());
    assertThat(gpu.environment()).isNotEmpty();
    return gpu;
  }

  @Test
  void theOldHolderDecidesNothingWhileABackendCloses() throws Exception {
    Hold hold = hold();
    VirtualGpu gpu = prepared();
    FakeBackend.FakeLease before = hook.leases.get(gpu.id());
    hook.beforeClose = hold;
    giveUp();
    hold.come.await();
    before.want();
    assertThat(before.open).isFalse();
    FutureTask<Integer> resized =
        CallsTest.start(
            () -> {
              gpu.resize(smaller());
              return 0;
            });
    othersAreServedBy(client);
    hold.goes.countDown();
    assertThat(resized.get()).isZero();
    assertThat(client.leases())
        .filteredOn(lease -> lease.id().equals(gpu.id()))
        .extracting(GpuLease::request)
        .singleElement()
        .matches(request -> request.memory().equals(smaller().memory()));
  }

  private void othersAreServedBy(GpuPool pool) {
    try (VirtualGpu other = pool.acquire(program())) {
      assertThat(other.environment()).containsEntry("VGPU_LEASE", other.id());
    }
  }

  @Test
  void aBackendThatIsBeingOpenedIsClosedLaterAndKeepsNoOtherOpen() throws Exception {
    Hold hold = hold();
    space.beforeOpen = hold; // the one beneath it is open then
    FutureTask<VirtualGpu> part = CallsTest.start(() -> holder.acquire(part(100)));
    hold.come.await();
    hook.hangs = true;
    Pools.await(() -> hook.closed == 1);
    hook.hangs = false;
    assertThat(space.closed).hasValue(0);
    hold.goes.countDown();
    assertThat(part.get().environment()).containsEntry("PART", "7");
    assertThat(space.closed).hasValue(1);
  }

  @Test
  void aVirtualGpuThatIsGrantedMeanwhileHasTurnsAtTheNextHolder() throws Exception {
    assertThat(prepared().isClosed()).isFalse();
    space.whenGranted = false;
    Hold hold = hold();
    space.beforeTold =
        () -> {
          if (isAnyOnDisk("late-")) {
            hold.run();
          }
        };
    FutureTask<VirtualGpu> late =
        CallsTest.start(
            () ->
                holder.acquire(
                    Pools.request(NEARLINE)
                        .name("late")
                        .gpu(gpus.get(0).id())
                        .require(Capabilities.Compute.SPATIAL)
                        .build()));
    hold.come.await();
    giveUp();
    hold.goes.countDown();
    VirtualGpu granted = late.get();
    FutureTask<Integer> call = CallsTest.start(() -> granted.call(() -> 42));
    assertThat(call.get(30, TimeUnit.SECONDS)).isEqualTo(42);
    assertThat(lists(client, granted.id())).isTrue();
  }

  /** The next holder could not tell what becomes of the part, but it cannot wait without end. */
  @Test
  void aPartInWorkKeepsTheSeatForAFewSecondsAndNoLonger() throws Exception {
    VirtualGpu gpu = prepared();
    Hold hold = hold();
    space.beforePrepare = hold;
    FutureTask<VirtualGpu> part = CallsTest.start(() -> holder.acquire(wholeGpu()));
    hold.come.await();
    long beganNs = NanoClock.SYSTEM.nanoTime();
    hook.hangs = true;
    Pools.await(() -> !Files.exists(directory.resolve("seat.sock")));
    hook.hangs = false;
    assertThat(lists(client, gpu.id())).isTrue();
    assertThat(NanoClock.SYSTEM.nanoTime() - beganNs).isGreaterThan(A_FEW_SECONDS_NS);
    assertThatTheNextHolderSetsAnotherAside(part, hold);
  }

  @Test
  void aPartInWorkReservesNothingIfTheSameProcessTakesTheSeatAgain() throws Exception {
    client.close();
    assertThat(prepared().isClosed()).isFalse();
    Hold hold = hold();
    space.beforePrepare = hold;
    FutureTask<VirtualGpu> part = CallsTest.start(() -> holder.acquire(wholeGpu()));
    hold.come.await();
    giveUp();
    assertThatTheNextHolderSetsAnotherAside(part, hold);
  }

  @Test
  void aPartInWorkReservesNothingIfTheProcessThatAskedForItTakesTheSeat() throws Exception {
    assertThat(prepared().isClosed()).isFalse();
    Hold hold = hold();
    space.beforePrepare = hold;
    FutureTask<VirtualGpu> part = CallsTest.start(() -> client.acquire(wholeGpu()));
    hold.come.await();
    giveUp();
    assertThatTheNextHolderSetsAnotherAside(part, hold);
  }

  private VirtualGpuRequest wholeGpu() {
    return part(1000);
  }

  /**
   * Whoever waits for a part has one from the next holder although the backend still hangs with the
   * first. That one is nobody's: it holds nothing of the GPU, and its late end changes nothing.
   */
  private void assertThatTheNextHolderSetsAnotherAside(FutureTask<VirtualGpu> part, Hold hold)
      throws Exception {
    VirtualGpu granted = part.get();
    assertThat(hold.goes.getCount()).isEqualTo(1);
    assertThat(space.prepared).containsExactly(granted.id());
    assertThat(granted.environment()).containsEntry("PART", "7");
    hold.goes.countDown();
    Pools.await(() -> space.prepared.size() == 2);
    String first = space.prepared.get(1);
    assertThat(first).isNotEqualTo(granted.id());
    assertThat(lists(holder, first)).isFalse();
    assertThat(isOnDisk(first)).isFalse();
    assertThat(lists(holder, granted.id())).isTrue();
    assertThat(isOnDisk(granted.id())).isTrue();
    granted.close();
    Pools.await(() -> !lists(holder, granted.id())); // the other process may be its owner
    try (VirtualGpu next = holder.acquire(wholeGpu())) {
      assertThat(next.environment()).containsEntry("PART", "7");
    }
  }

  private boolean isAnyOnDisk(String prefix) {
    String[] names =
        directory.resolve("leases").toFile().list((in, name) -> name.startsWith(prefix));
    return names != null && names.length > 0;
  }

  @Test
  void whatHasEndedButHasProgramsEndsWithThemAtTheNextHolder() throws Exception {
    VirtualGpu gpu = prepared();
    hook.leases.get(gpu.id()).attach(OTHER);
    gpu.close();
    assertThat(lists(client, gpu.id())).isTrue();
    giveUp();
    assertThat(lists(client, gpu.id())).isTrue();
    hook.leases.get(gpu.id()).exit(OTHER);
    awaitGone(gpu.id());
  }

  @Test
  void whatHasEndedButHasProgramsEndsWithThemIfTheSameProcessTakesTheSeatAgain() throws Exception {
    client.close();
    VirtualGpu gpu = prepared();
    hook.leases.get(gpu.id()).attach(OTHER);
    gpu.close();
    giveUp();
    assertThat(lists(holder, gpu.id())).isTrue();
    hook.leases.get(gpu.id()).exit(OTHER);
    Pools.await(() -> !lists(holder, gpu.id()) && !isOnDisk(gpu.id()));
  }
}
