package dev.vgpu.core.pool;

import static dev.vgpu.request.PreemptionClass.NEARLINE;
import static dev.vgpu.request.PreemptionClass.ONLINE;
import static org.assertj.core.api.Assertions.assertThat;

import dev.vgpu.GpuPool;
import dev.vgpu.GpuTurn;
import dev.vgpu.VirtualGpu;
import dev.vgpu.core.NanoClock;
import dev.vgpu.watch.GpuLease;
import java.time.Duration;
import java.util.List;
import java.util.Optional;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.FutureTask;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.LockSupport;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.RepeatedTest;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** The process that holds the seat is alive but does not serve. */
@Timeout(60)
class MuteSeatTest extends TwoPools {
  private static final long HANGS_NS = 3_000_000_000L;

  private final CountDownLatch goesOn = new CountDownLatch(1);

  @AfterEach
  void letGoOn() {
    goesOn.countDown();
  }

  /**
   * Makes the scheduler of the GPU hang until it is released; the result is counted down when it
   * hangs.
   */
  private CountDownLatch hang(VirtualGpu programs) {
    CountDownLatch hangs = new CountDownLatch(1);
    FakeBackend.FakeLease lease = backend.leases.get(programs.id());
    lease.attach(1);
    lease.beforeOpen =
        () -> {
          hangs.countDown();
          try {
            goesOn.await();
          } catch (InterruptedException e) {
            throw new AssertionError(e);
          }
        };
    Thread thread = new Thread(lease::want);
    thread.setDaemon(true);
    thread.start();
    return hangs;
  }

  @RepeatedTest(3)
  void hangingSeatIsTakenOverAndNobodyIsLost() throws Exception {
    VirtualGpu ofHolder = holder.acquire(Pools.share(ONLINE, 30));
    VirtualGpu ofClient = client.acquire(Pools.share(ONLINE, 30));
    VirtualGpu programs = client.acquire(Pools.share(NEARLINE, 20));
    assertThat(programs.environment()).isNotEmpty();
    assertThat(ofHolder.call(() -> 41)).isEqualTo(41);
    FutureTask<Optional<VirtualGpu>> waiting =
        CallsTest.start(() -> holder.tryAcquire(Pools.share(ONLINE, 50), Duration.ofSeconds(50)));
    hang(programs).await();
    long startNs = NanoClock.SYSTEM.nanoTime();
    List<String> all = List.of(ofHolder.id(), ofClient.id(), programs.id());
    assertThat(client.leases()).map(GpuLease::id).containsExactlyInAnyOrderElementsOf(all);
    long ms = (NanoClock.SYSTEM.nanoTime() - startNs) / 1_000_000;
    System.out.println("a seat that hangs: another answers after ms=" + ms);
    assertThat(ofClient.call(() -> 42)).isEqualTo(42);
    goesOn.countDown();
    assertThat(ofHolder.call(() -> 43)).isEqualTo(43);
    assertThat(holder.leases()).map(GpuLease::id).containsExactlyInAnyOrderElementsOf(all);
    assertThat(ofHolder.isClosed()).isFalse();
    ofClient.close();
    assertThat(waiting.get(30, TimeUnit.SECONDS)).isPresent();
    backend.leases.get(programs.id()).exit(1);
  }

  @Test
  void holderThatHangsForSecondsLosesNothing() throws Exception {
    VirtualGpu ofHolder = holder.acquire(Pools.share(ONLINE, 30));
    VirtualGpu programs = client.acquire(Pools.share(NEARLINE, 20));
    assertThat(programs.environment()).isNotEmpty();
    hang(programs).await();
    assertThat(client.leases()).hasSize(2);
    LockSupport.parkNanos(HANGS_NS);
    assertThat(client.leases()).hasSize(2);
    goesOn.countDown();
    assertThat(ofHolder.call(() -> 42)).isEqualTo(42);
    assertThat(ofHolder.isClosed()).isFalse();
    backend.leases.get(programs.id()).exit(1);
  }

  /** The kernel lets the last of these in, and the thread that would welcome it hangs. */
  @RepeatedTest(3)
  void poolThatIsOpenedWhileTheSeatHangsFindsTheNextOne() throws Exception {
    VirtualGpu ofClient = client.acquire(Pools.share(ONLINE, 30));
    VirtualGpu programs = client.acquire(Pools.share(NEARLINE, 20));
    assertThat(programs.environment()).isNotEmpty();
    hang(programs).await();
    FutureTask<Integer> call = CallsTest.start(() -> ofClient.call(() -> 42));
    while (backend.opened < 2) {
      try (GpuPool another = open()) {
        assertThat(another.leases()).hasSize(2);
      }
    }
    assertThat(call.get(30, TimeUnit.SECONDS)).isEqualTo(42);
    goesOn.countDown();
    assertThat(holder.leases()).hasSize(2);
    assertThat(client.leases()).hasSize(2);
    backend.leases.get(programs.id()).exit(1);
    ofClient.close();
    programs.close();
  }

  @RepeatedTest(3)
  void callThatRunsOnIsKnownToTheNextSeat() throws Exception {
    VirtualGpu ofHolder = holder.acquire(Pools.request(NEARLINE).build());
    VirtualGpu ofClient = client.acquire(Pools.request(NEARLINE).build());
    VirtualGpu programs = client.acquire(Pools.request(ONLINE).build());
    assertThat(programs.environment()).isNotEmpty();
    GpuTurn turn = ofHolder.enter();
    FutureTask<Integer> call = CallsTest.start(() -> ofClient.call(() -> 42));
    CountDownLatch hangs = hang(programs); // once the turn has ended
    FutureTask<?> ends =
        CallsTest.start(
            () -> {
              turn.close();
              return 0;
            });
    hangs.await();
    Pools.await(() -> backend.opened == 2);
    goesOn.countDown();
    ends.get(10, TimeUnit.SECONDS);
    assertThat(call.get(10, TimeUnit.SECONDS)).isEqualTo(42);
    assertThat(ofHolder.call(() -> 43)).isEqualTo(43);
    assertThat(ofClient.call(() -> 44)).isEqualTo(44);
    backend.leases.get(programs.id()).exit(1);
  }
}
