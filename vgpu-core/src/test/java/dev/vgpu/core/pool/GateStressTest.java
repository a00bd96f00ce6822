package dev.vgpu.core.pool;

import static org.assertj.core.api.Assertions.assertThat;

import dev.vgpu.CallOptions;
import dev.vgpu.GpuPool;
import dev.vgpu.GpuTurn;
import dev.vgpu.MemoryReservation;
import dev.vgpu.PreemptibleCall;
import dev.vgpu.VgpuException;
import dev.vgpu.VirtualGpu;
import dev.vgpu.request.MemorySize;
import dev.vgpu.request.PreemptionClass;
import dev.vgpu.request.SharePolicy;
import dev.vgpu.request.VirtualGpuRequest;
import dev.vgpu.testing.TestSeed;
import dev.vgpu.watch.GpuUsage;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Random;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.FutureTask;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicLong;
import java.util.concurrent.atomic.AtomicReference;
import java.util.concurrent.atomic.AtomicReferenceArray;
import org.junit.jupiter.api.Test;

/**
 * Threads do at random everything that virtual GPUs allow; afterwards nothing is left behind. For a
 * longer run, set {@code -Dvgpu.stress.steps=1000000} and {@code -Dvgpu.testTimeout}.
 */
class GateStressTest {
  private static final List<PreemptionClass> CLASSES = List.of(PreemptionClass.values());
  private static final int THREADS = 8;
  private static final int STEPS = Integer.getInteger("vgpu.stress.steps", 2000);
  private static final int QUOTA_MIB = 20;
  private static final int MOST_CALLS = 4;

  private final GpuPool pool = Pools.open();
  private final AtomicReferenceArray<Used> tenants = new AtomicReferenceArray<>(CLASSES.size());
  private final AtomicReference<Used> inside = new AtomicReference<>();
  private final AtomicReference<String> broken = new AtomicReference<>();
  private final BlockingQueue<Runnable> handedOver = new LinkedBlockingQueue<>();
  private final AtomicLong outstanding = new AtomicLong();
  private final AtomicLong refused = new AtomicLong();
  private final AtomicBoolean over = new AtomicBoolean();

  /** A virtual GPU, with the calls that are inside and their memory. */
  private static final class Used {
    final VirtualGpu gpu;
    final AtomicLong memory = new AtomicLong();
    final AtomicLong calls = new AtomicLong();

    Used(VirtualGpu gpu) {
      this.gpu = gpu;
    }
  }

  private Used acquire(int which) {
    VirtualGpuRequest.Builder request =
        VirtualGpuRequest.builder()
            .memory(MemorySize.ofMebibytes(QUOTA_MIB))
            .maxConcurrentCalls(MOST_CALLS)
            .preemptionClass(CLASSES.get(which));
    if (CLASSES.get(which) != PreemptionClass.OFFLINE) {
      request.policy(SharePolicy.BURST_SHARE).computePercent(5);
    }
    return new Used(pool.acquire(request.build()));
  }

  /** Records that a call of a tenant is inside; no other tenant's call may be. */
  private void arrive(Used used, int mebibytes) {
    if (used.calls.incrementAndGet() > MOST_CALLS) {
      broken.compareAndSet(null, "more calls than the bound");
    }
    if (used.memory.addAndGet(mebibytes) > QUOTA_MIB) {
      broken.compareAndSet(null, "more memory than the quota");
    }
    Used other = inside.getAndSet(used);
    if (other != null && other != used && other.calls.get() > 0) {
      broken.compareAndSet(null, "two tenants inside: " + other.gpu + ", " + used.gpu);
    }
  }

  private static void depart(Used used, int mebibytes) {
    used.memory.addAndGet(-mebibytes);
    used.calls.decrementAndGet();
  }

  private static final class Refused extends RuntimeException {
    private static final long serialVersionUID = 1L;
  }

  /** The work of one thread. */
  private final class Worker {
    private final Random random;
    private volatile Thread thread;

    Worker(int number) {
      random = new Random(TestSeed.seed() + number);
    }

    Integer work() {
      thread = Thread.currentThread();
      for (int i = 0; i < STEPS && broken.get() == null; i++) {
        int which = random.nextInt(tenants.length());
        try {
          Used used = tenants.get(which);
          if (used != null) { // null: another thread is about to reopen it
            step(which, used);
          }
        } catch (InterruptedException | VgpuException | Refused | IllegalStateException e) {
          // Expected: a timeout; a reservation that leaves too little memory; a virtual GPU closed
          // by another thread; or this thread was inside another tenant's turn.
          refused.incrementAndGet();
        } catch (Exception e) {
          broken.compareAndSet(null, "unexpected: " + e);
        } finally {
          Thread.interrupted();
        }
      }
      thread = null;
      return 1;
    }

    private void step(int which, Used used) throws Exception {
      int mebibytes = random.nextBoolean() ? 0 : 1 + random.nextInt(QUOTA_MIB);
      CallOptions options = options(mebibytes);
      if (random.nextInt(16) == 0) {
        Thread.currentThread().interrupt();
      }
      switch (random.nextInt(20)) {
        case 0 -> reopen(which, used);
        case 1, 2 -> handOver(used, options, mebibytes);
        case 3, 4, 5 -> preemptible(used, options, mebibytes);
        case 6 -> fail(used, options, mebibytes);
        case 7, 8 -> nested(used, options, mebibytes);
        case 9 -> submit(used, options, mebibytes);
        case 10 ->
            used.gpu.tryReserve(MemorySize.ofMebibytes(1)).ifPresent(MemoryReservation::close);
        default -> used.gpu.run(() -> visit(used, mebibytes), options);
      }
    }

    private CallOptions options(int mebibytes) {
      CallOptions.Builder options = CallOptions.builder().maxPreemptions(random.nextInt(4));
      if (mebibytes > 0) {
        options.memory(MemorySize.ofMebibytes(mebibytes));
      }
      if (random.nextInt(3) == 0) {
        options.timeout(Duration.ofNanos(random.nextInt(500_000)));
      }
      if (random.nextInt(3) == 0) {
        options.preemptionClass(CLASSES.get(random.nextInt(CLASSES.size())));
      }
      return options.build();
    }

    private void visit(Used used, int mebibytes) {
      arrive(used, mebibytes);
      for (int i = random.nextInt(2000); i > 0; i--) {
        Thread.onSpinWait();
      }
      depart(used, mebibytes);
    }

    private void reopen(int which, Used used) {
      if (tenants.compareAndSet(which, used, null)) {
        used.gpu.close();
        tenants.set(which, acquire(which));
      }
    }

    private void handOver(Used used, CallOptions options, int mebibytes) throws Exception {
      GpuTurn turn = used.gpu.enter(options);
      arrive(used, mebibytes);
      AtomicBoolean closed = new AtomicBoolean();
      handedOver.add(
          () -> {
            depart(used, mebibytes);
            turn.close();
            turn.close();
            closed.set(true);
          });
      try {
        used.gpu.run(() -> {}); // inside the turn, or after it if it is closed already
        Used other = tenants.get(random.nextInt(tenants.length()));
        if (other != null) {
          other.gpu.run(() -> {}); // nested, or refused, or after the turn
        }
      } finally {
        while (!closed.get()) {
          Thread.onSpinWait();
        }
      }
    }

    private void preemptible(Used used, CallOptions options, int mebibytes) throws Exception {
      AtomicBoolean cancelled = new AtomicBoolean();
      PreemptibleCall<Integer> call =
          new PreemptibleCall<>() {
            @Override
            public Integer call() {
              cancelled.set(false);
              arrive(used, mebibytes);
              try {
                for (int i = random.nextInt(20_000); i > 0; i--) {
                  Thread.onSpinWait();
                  if (cancelled.get()) {
                    throw new Refused();
                  }
                }
                return 1;
              } finally {
                depart(used, mebibytes);
              }
            }

            @Override
            public void cancel() {
              cancelled.set(true);
            }
          };
      assertThat(used.gpu.<Integer>call(call, options)).isEqualTo(1);
    }

    private void fail(Used used, CallOptions options, int mebibytes) throws Exception {
      used.gpu.call(
          () -> {
            visit(used, mebibytes);
            throw new Refused();
          },
          options);
    }

    private void nested(Used used, CallOptions options, int mebibytes) throws Exception {
      GpuTurn turn = used.gpu.enter(options);
      try {
        visit(used, mebibytes);
        used.gpu.run(
            () -> {
              turn.close(); // ends when the nested call has ended
              visit(used, mebibytes);
            });
      } finally {
        turn.close();
      }
    }

    private void submit(Used used, CallOptions options, int mebibytes) {
      Worker other = new Worker(random.nextInt());
      CompletableFuture<Integer> submitted =
          used.gpu.submit(
              () -> {
                other.visit(used, mebibytes);
                return 1;
              },
              options);
      outstanding.incrementAndGet();
      CompletableFuture<Integer> ignored =
          submitted.whenComplete((result, failure) -> outstanding.decrementAndGet());
    }
  }

  /** Closes the turns that are handed over, and interrupts random threads. */
  private Integer disturb(List<Worker> workers) throws InterruptedException {
    Random random = new Random(TestSeed.seed() - 1);
    while (!over.get() || !handedOver.isEmpty()) {
      Runnable close = handedOver.poll(20, TimeUnit.MICROSECONDS);
      if (close != null) {
        close.run();
      }
      if (random.nextInt(16) == 0) {
        Thread thread = workers.get(random.nextInt(workers.size())).thread;
        if (thread != null) {
          thread.interrupt();
        }
      }
    }
    return 1;
  }

  @Test
  void nothingIsLeftBehind() throws Exception {
    for (int i = 0; i < tenants.length(); i++) {
      tenants.set(i, acquire(i));
    }
    List<Worker> workers = new ArrayList<>();
    List<FutureTask<Integer>> tasks = new ArrayList<>();
    for (int i = 0; i < THREADS; i++) {
      workers.add(new Worker(i));
      tasks.add(CallsTest.start(workers.get(i)::work));
    }
    FutureTask<Integer> disturber = CallsTest.start(() -> disturb(workers));
    for (FutureTask<Integer> task : tasks) {
      task.get();
    }
    over.set(true);
    disturber.get();
    assertThat(broken).hasValue(null);
    assertThat(refused.get()).isBetween(1L, THREADS * (long) STEPS - 1);
    Pools.await(() -> outstanding.get() == 0);
    Pools.await(() -> pool.leases().size() == tenants.length());
    for (int i = 0; i < tenants.length(); i++) {
      VirtualGpu gpu = tenants.get(i).gpu;
      gpu.run(() -> {}, CallOptions.ofMemory(MemorySize.ofMebibytes(QUOTA_MIB)));
      GpuUsage usage = gpu.usage();
      assertThat(usage.running()).isZero();
      assertThat(usage.waiting()).isZero();
      assertThat(usage.memoryReserved()).isEqualTo(MemorySize.ZERO);
      assertThat(usage.calls()).isPositive();
    }
    pool.close();
    assertThat(pool.leases()).isEmpty();
  }
}
