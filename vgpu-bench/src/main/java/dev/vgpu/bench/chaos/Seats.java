package dev.vgpu.bench.chaos;

import dev.vgpu.bench.harness.NanoClock;
import dev.vgpu.bench.harness.Node;
import dev.vgpu.bench.harness.PoolProcess;
import java.util.ArrayList;
import java.util.List;

/** The processes that hold the seat or stand by for it. Confined to one thread. */
public final class Seats {
  private static final int POOLS = 2;
  private static final long LONGEST_TAKE_OVER_NS = 20_000_000_000L;
  private static final String OFFLINE_FLOOR = "floor=10";

  private final Node node;
  private final Machine machine;
  private final List<PoolProcess> pools = new ArrayList<>();
  private double worstTakeOverMs;

  /** Opens the pools. */
  public Seats(Node node, Machine machine) throws InterruptedException {
    this.node = node;
    this.machine = machine;
    fillUp();
  }

  /** Opens pools until there are enough. */
  public void fillUp() throws InterruptedException {
    Patience patience =
        new Patience(machine, () -> pools.stream().map(pool -> pool.child().pid()).toList());
    while (pools.size() < POOLS) {
      try {
        pools.add(node.openPool(OFFLINE_FLOOR));
      } catch (IllegalStateException e) {
        // A new process waits 5 s for a holder of the seat, and a machine that runs late may start
        // none in that time.
        if (patience.isOver(LONGEST_TAKE_OVER_NS)) {
          throw e;
        }
      }
    }
  }

  /** {@return the processes that can hold the seat} */
  public List<PoolProcess> pools() {
    return List.copyOf(pools);
  }

  /** Any of the processes. */
  public PoolProcess any() {
    return pools.get(pools.size() - 1);
  }

  /** {@return the process that holds the seat; waits until one of them does} */
  public PoolProcess holder() throws InterruptedException {
    Patience patience =
        new Patience(machine, () -> pools.stream().map(pool -> pool.child().pid()).toList());
    while (true) {
      long holder = node.seatHolder();
      for (PoolProcess pool : pools) {
        if (pool.child().pid() == holder && pool.child().isAlive()) {
          return pool;
        }
      }
      if (patience.isOver(LONGEST_TAKE_OVER_NS)) {
        throw new ChaosFailure("nobody takes the seat over; last holder: pid=" + holder);
      }
      NanoClock.sleepMillis(2);
    }
  }

  /** Kills the holder, and returns its process. */
  public PoolProcess killHolder() throws InterruptedException {
    PoolProcess killed = holder();
    killed.child().kill();
    pools.remove(killed);
    return killed;
  }

  /** Waits until another process holds the seat. */
  public void awaitHolder() throws InterruptedException {
    long beginNs = NanoClock.nanoTime();
    holder();
    worstTakeOverMs = Math.max(worstTakeOverMs, (NanoClock.nanoTime() - beginNs) / 1e6);
  }

  double worstTakeOverMs() {
    return worstTakeOverMs;
  }
}
