package dev.vgpu.bench.process;

import static org.assertj.core.api.Assertions.assertThat;

import dev.vgpu.bench.harness.Child;
import dev.vgpu.bench.harness.NanoClock;
import dev.vgpu.bench.harness.Node;
import dev.vgpu.bench.harness.PoolProcess;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;

/** The seat's holder dies, or two want the seat: no virtual GPU is lost, no program fails. */
class SeatIT {
  private Node node;

  @BeforeEach
  void open() throws Exception {
    node = Node.open(Map.of());
  }

  @AfterEach
  void close() {
    System.err.print(node.errors());
    node.close();
  }

  @Test
  void holderKilledUnderLoadFailsNoTenantAndLosesNoLease() throws Exception {
    List<PoolProcess> pools = new ArrayList<>(List.of(node.openPool()));
    PoolProcess owner = node.openPool();
    pools.add(owner); // may hold the seat later; its virtual GPUs stay as long as their programs
    Map<String, String> first = Tenants.burst(owner, "first", 30);
    Map<String, String> second = Tenants.burst(owner, "second", 30);
    Child observer = Tenants.observer(node, first, Tenants.QUOTA);
    List<Child> tenants =
        new ArrayList<>(
            List.of(
                Tenants.load(node, first).awaitReady(), Tenants.load(node, second).awaitReady()));
    for (int i = 0; i < 4; i++) {
      pools.add(node.openPool());
      long holder = node.seatHolder();
      PoolProcess killed =
          pools.stream().filter(pool -> pool.child().pid() == holder).findFirst().orElseThrow();
      pools.remove(killed);
      killed.child().kill();
      Tenants.assertAllGoOn(tenants);
      // A program that starts without a seat waits for the next holder.
      tenants.add(Tenants.load(node, i % 2 == 0 ? first : second).awaitReady());
      awaitHolderOtherThan(holder);
      assertThat(last(pools).leases()).hasSize(2);
      assertThat(last(pools).processes()).isEqualTo(tenants.size());
      Tenants.assertAllGoOn(tenants);
    }
    Tenants.kill(tenants);
    Tenants.assertAllIsBack(last(pools), observer);
  }

  private static PoolProcess last(List<PoolProcess> pools) {
    return pools.get(pools.size() - 1);
  }

  private void awaitHolderOtherThan(long dead) throws Exception {
    long tries = 1_000;
    while (node.seatHolder() == dead || node.seatHolder() == 0) {
      assertThat(tries--).as("nobody takes the seat over").isPositive();
      NanoClock.sleepMillis(10);
    }
  }

  @Test
  void ofSeveralThatOpenAtOnceOneHoldsTheSeatAndAllSeeTheSame() throws Exception {
    List<CompletableFuture<PoolProcess>> opening = new ArrayList<>();
    for (int i = 0; i < 3; i++) {
      opening.add(CompletableFuture.supplyAsync(this::openPool));
    }
    List<PoolProcess> pools = new ArrayList<>();
    for (CompletableFuture<PoolProcess> future : opening) {
      pools.add(future.get());
    }
    for (int i = 0; i < 3; i++) {
      Tenants.burst(pools.get(i), "of" + i, 20);
    }
    for (PoolProcess pool : pools) {
      assertThat(pool.leases()).hasSize(3);
    }
    long holder = node.seatHolder();
    assertThat(pools).extracting(pool -> pool.child().pid()).containsOnlyOnce(holder);
    pools.stream().filter(pool -> pool.child().pid() == holder).forEach(PoolProcess::close);
    pools.removeIf(pool -> pool.child().pid() == holder);
    awaitHolderOtherThan(holder);
    // The dead holder's own lease had no program, so it is released; the others' leases are kept.
    long tries = 500;
    while (pools.get(0).leases().size() != 2 || pools.get(1).leases().size() != 2) {
      assertThat(tries--).as("%s", pools.get(0).leases()).isPositive();
      NanoClock.sleepMillis(10);
    }
  }

  private PoolProcess openPool() {
    try {
      return node.openPool();
    } catch (InterruptedException e) {
      throw new IllegalStateException(e);
    }
  }
}
