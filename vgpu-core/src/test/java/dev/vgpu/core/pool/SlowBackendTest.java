package dev.vgpu.core.pool;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.vgpu.GpuCapacityException;
import dev.vgpu.GpuPool;
import dev.vgpu.VirtualGpu;
import dev.vgpu.backend.BackendChoice;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.FutureTask;
import org.junit.jupiter.api.Test;

/** A backend that prepares, moves or closes a virtual GPU keeps nobody else waiting. */
class SlowBackendTest extends SlowBackends {
  // ---- programs

  @Test
  void aProgramThatIsPreparedKeepsNobodyWaiting() throws Exception {
    for (GpuPool pool : List.of(holder, client)) {
      Hold hold = hold();
      VirtualGpu gpu = pool.acquire(program());
      hook.beforePrepare = hold;
      FutureTask<Map<String, String>> first = CallsTest.start(gpu::environment);
      hold.come.await();
      FutureTask<Map<String, String>> second = CallsTest.start(gpu::environment);
      othersAreServed();
      assertThat(lists(client, gpu.id())).isTrue();
      int before = hold.count.get();
      hold.goes.countDown();
      assertThat(first.get()).containsEntry("VGPU_LEASE", gpu.id());
      assertThat(second.get()).isEqualTo(first.get());
      assertThat(hold.count).hasValue(before); // prepared once
      gpu.close();
      awaitGone(gpu.id());
    }
  }

  @Test
  void whatEndsWhileItIsPreparedIsKeptUntilThen() throws Exception {
    for (GpuPool pool : List.of(holder, client)) {
      Hold hold = hold();
      VirtualGpu gpu = pool.acquire(program());
      hook.beforePrepare = hold;
      FutureTask<Map<String, String>> program = CallsTest.start(gpu::environment);
      hold.come.await();
      gpu.close();
      othersAreServed();
      assertThat(isOnDisk(gpu.id())).isTrue();
      assertThat(lists(client, gpu.id())).isTrue();
      hold.goes.countDown();
      assertThat(program.get()).isNotEmpty();
      awaitGone(gpu.id());
      assertThat(hook.leases.get(gpu.id()).revoked).isTrue();
    }
  }

  @Test
  void whatCannotBePreparedStaysAsItWas() throws Exception {
    Hold hold = hold();
    hold.fails = true;
    VirtualGpu gpu = client.acquire(program());
    hook.beforePrepare = hold;
    FutureTask<Map<String, String>> first = CallsTest.start(gpu::environment);
    hold.come.await();
    othersAreServed();
    hold.goes.countDown();
    assertThatThrownBy(first::get).hasMessageContaining("the device said no");
    assertThat(lists(holder, gpu.id())).isTrue();
    assertThat(gpu.environment()).containsEntry("VGPU_LEASE", gpu.id());
  }

  @Test
  void changesOfWhatIsPreparedWaitForThatAlone() throws Exception {
    Hold hold = hold();
    VirtualGpu gpu = client.acquire(program());
    hook.beforePrepare = hold;
    FutureTask<Map<String, String>> program = CallsTest.start(gpu::environment);
    hold.come.await();
    FutureTask<Integer> changes =
        CallsTest.start(
            () -> {
              gpu.resize(smaller());
              gpu.suspend(LONG);
              return 0;
            });
    othersAreServed();
    hold.goes.countDown();
    assertThat(changes.get()).isZero();
    assertThat(hook.leases.get(gpu.id()).open).isFalse();
    gpu.resume(LONG);
    assertThat(gpu.request().memory()).isEqualTo(smaller().memory());
    assertThat(program.isDone()).isTrue();
  }

  // ---- parts of GPUs

  @Test
  void aPartThatIsSetAsideKeepsNobodyWaiting() throws Exception {
    for (GpuPool pool : List.of(holder, client)) {
      Hold hold = hold();
      space.beforePrepare = hold;
      FutureTask<VirtualGpu> waiting = CallsTest.start(() -> pool.acquire(part(900)));
      hold.come.await();
      othersAreServed();
      assertThat(listedPart().backend()).contains("staged");
      assertThat(listedPart().request().memory()).isEqualTo(part(900).memory());
      hold.goes.countDown();
      VirtualGpu gpu = waiting.get();
      assertThat(gpu.environment()).containsEntry("PART", "7");
      gpu.close();
      awaitGone(gpu.id());
    }
  }

  @Test
  void aPartThatIsGivenBackKeepsNobodyWaitingAndIsFreeOnlyThen() throws Exception {
    for (GpuPool pool : List.of(holder, client)) {
      Hold hold = hold();
      VirtualGpu gpu = pool.acquire(part(900));
      space.beforeClose = hold;
      FutureTask<Integer> closes =
          CallsTest.start(
              () -> {
                gpu.close();
                return 0;
              });
      hold.come.await();
      othersAreServed();
      assertThat(lists(client, gpu.id())).isTrue();
      assertThat(client.tryAcquire(part(900), Duration.ZERO)).isEmpty();
      FutureTask<VirtualGpu> next = CallsTest.start(() -> client.acquire(part(900)));
      hold.goes.countDown();
      assertThat(closes.get()).isZero();
      next.get().close();
      awaitGone(gpu.id());
      awaitGone(next.get().id());
    }
    assertThat(space.mostWorking).hasValue(1);
  }

  @Test
  void partsAreSetAsideOneAfterTheOther() throws Exception {
    Hold hold = hold();
    space.beforePrepare = hold;
    FutureTask<VirtualGpu> first = CallsTest.start(() -> holder.acquire(part(400)));
    hold.come.await();
    List<FutureTask<VirtualGpu>> others = new ArrayList<>();
    for (GpuPool pool : List.of(holder, client)) {
      others.add(CallsTest.start(() -> pool.acquire(part(100))));
      others.add(CallsTest.start(() -> pool.tryAcquire(part(100), LONG).orElseThrow()));
    }
    assertThat(client.explain(part(100)))
        .filteredOn(choice -> choice.backend().equals("staged"))
        .extracting(BackendChoice::verdict)
        .doesNotContain(BackendChoice.Verdict.CHOSEN, BackendChoice.Verdict.POSSIBLE);
    othersAreServed();
    assertThat(space.prepared).isEmpty();
    hold.goes.countDown();
    first.get().close();
    for (FutureTask<VirtualGpu> other : others) {
      other.get().close();
    }
    for (FutureTask<VirtualGpu> other : others) {
      awaitGone(other.get().id());
    }
    assertThat(space.mostWorking).hasValue(1);
  }

  @Test
  void aRequestThatDoesNotFitBesideAPartIsRefusedWhenThatIsThere() throws Exception {
    Hold hold = hold();
    space.beforePrepare = hold;
    FutureTask<VirtualGpu> first = CallsTest.start(() -> client.acquire(part(900)));
    hold.come.await();
    FutureTask<VirtualGpu> second = CallsTest.start(() -> client.acquire(part(901)));
    othersAreServed();
    hold.goes.countDown();
    assertThat(first.get().id()).isNotEmpty();
    assertThatThrownBy(second::get)
        .isInstanceOf(ExecutionException.class)
        .hasCauseInstanceOf(GpuCapacityException.class);
  }

  @Test
  void aPartThatCannotBeSetAsideIsFreeForTheNext() throws Exception {
    Hold hold = hold();
    hold.fails = true;
    space.beforePrepare = hold;
    FutureTask<VirtualGpu> first = CallsTest.start(() -> client.acquire(part(900)));
    hold.come.await();
    String id = listedPart().id();
    FutureTask<Optional<VirtualGpu>> waits =
        CallsTest.start(() -> holder.tryAcquire(part(900), LONG));
    othersAreServed();
    hold.goes.countDown();
    assertThatThrownBy(first::get).hasMessageContaining("the device said no");
    assertThat(waits.get()).isPresent();
    awaitGone(id);
  }

  @Test
  void aPartThatNobodyWaitsForAnyMoreIsGivenBack() throws Exception {
    for (GpuPool pool : List.of(holder, client)) {
      Hold hold = hold();
      space.beforePrepare = hold;
      assertThat(pool.tryAcquire(part(900), Duration.ofMillis(1))).isEmpty();
      hold.come.await();
      String id = listedPart().id();
      othersAreServed();
      assertThat(isOnDisk(id)).isTrue();
      hold.goes.countDown();
      awaitGone(id);
      assertThat(hook.leases.get(id).revoked).isTrue();
      assertThat(pool.recentEvents()).noneMatch(event -> event.virtualGpu().equals(id));
    }
  }

  @Test
  void aPartOfAPoolThatClosesIsGivenBack() throws Exception {
    GpuPool other = open();
    Hold hold = hold();
    space.beforePrepare = hold;
    FutureTask<VirtualGpu> first = CallsTest.start(() -> other.acquire(part(900)));
    hold.come.await();
    String id = listedPart().id();
    other.close();
    othersAreServed();
    assertThat(isOnDisk(id)).isTrue();
    hold.goes.countDown();
    assertThatThrownBy(first::get).isInstanceOf(ExecutionException.class);
    awaitGone(id);
    assertThat(hook.leases.get(id).revoked).isTrue();
  }

  @Test
  void aPartOfTheHoldersOwnPoolThatClosesIsGivenBack() throws Exception {
    client.close();
    Hold hold = hold();
    space.beforePrepare = hold;
    FutureTask<VirtualGpu> first = CallsTest.start(() -> holder.acquire(part(900)));
    hold.come.await();
    String id = holder.leases().get(0).id();
    holder.close();
    assertThatThrownBy(first::get).hasMessageContaining("the pool was closed");
    assertThat(isOnDisk(id)).isTrue();
    hold.goes.countDown();
    Pools.await(() -> !isOnDisk(id));
    assertThat(hook.leases.get(id).revoked).isTrue();
  }

  @Test
  void partsThatAreMovedKeepNobodyWaiting() throws Exception {
    VirtualGpu gpu = client.acquire(part(100));
    Hold hold = hold();
    List<String> movable = new ArrayList<>();
    space.lack = Optional.of("no part is free");
    space.moves =
        mayMove -> {
          hold.run();
          movable.add(gpu.id());
          movable.removeIf(mayMove.negate());
          return List.of("moved");
        };
    FutureTask<List<String>> moves = CallsTest.start(() -> client.makeRoom(part(900)));
    hold.come.await();
    FutureTask<Map<String, String>> program = CallsTest.start(gpu::environment);
    othersAreServed();
    assertThat(program.isDone()).isFalse();
    gpu.close();
    othersAreServed();
    assertThat(isOnDisk(gpu.id())).isTrue();
    hold.goes.countDown();
    assertThat(moves.get()).containsExactly("moved");
    assertThat(movable).containsExactly(gpu.id());
    assertThat(program.get()).containsEntry("PART", "7");
    awaitGone(gpu.id());
  }

  // ---- the seat

  @Test
  void aSeatThatIsGivenUpLeavesWhatItPreparesToTheNext() throws Exception {
    Hold hold = hold();
    space.beforePrepare = hold;
    FutureTask<VirtualGpu> first = CallsTest.start(() -> holder.acquire(part(400)));
    hold.come.await();
    String id = listedPart().id();
    VirtualGpu program = client.acquire(program());
    assertThat(program.environment()).isNotEmpty();
    hook.hangs = true; // as if the holder did not serve any more
    Pools.await(() -> hook.opened == 2);
    hook.hangs = false;
    assertThat(lists(client, program.id())).isTrue();
    hold.goes.countDown();
    assertThat(program.environment()).containsEntry("VGPU_LEASE", program.id());
    assertThat(first.get().environment()).containsEntry("PART", "7");
    Pools.await(() -> !lists(client, id) && !isOnDisk(id)); // its owner does not know it
    assertThat(lists(client, program.id())).isTrue();
  }
}
