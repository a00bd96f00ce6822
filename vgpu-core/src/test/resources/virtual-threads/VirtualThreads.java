import dev.vgpu.CallOptions;
import dev.vgpu.GpuId;
import dev.vgpu.GpuPool;
import dev.vgpu.GpuPoolOptions;
import dev.vgpu.GpuTimeoutException;
import dev.vgpu.GpuTurn;
import dev.vgpu.MemorySize;
import dev.vgpu.PhysicalGpu;
import dev.vgpu.PreemptibleCall;
import dev.vgpu.PreemptionClass;
import dev.vgpu.SharePolicy;
import dev.vgpu.VirtualGpu;
import dev.vgpu.VirtualGpuRequest;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Queue;
import java.util.Random;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.Semaphore;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.locks.LockSupport;
import jdk.jfr.consumer.RecordedEvent;
import jdk.jfr.consumer.RecordedFrame;
import jdk.jfr.consumer.RecordingStream;

/**
 * Thousands of virtual threads use three virtual GPUs; prints how they ended and whether any was
 * pinned inside vgpu. Run from its source by VirtualThreadsTest, on a JDK that has virtual threads.
 */
public final class VirtualThreads {
  private static final int CROWD = Integer.getInteger("crowd", 3000);
  private static final long PATIENCE_S = 45;
  private static final String PINNED = "jdk.VirtualThreadPinned";

  private static final AtomicInteger completed = new AtomicInteger();
  private static final AtomicInteger timedOut = new AtomicInteger();
  private static final AtomicInteger interrupted = new AtomicInteger();
  private static final AtomicInteger attempts = new AtomicInteger();
  private static final AtomicInteger pinnedByControl = new AtomicInteger();
  private static final Queue<String> pinned = new ConcurrentLinkedQueue<>();
  private static final Queue<Throwable> failures = new ConcurrentLinkedQueue<>();

  private record Gpu(GpuId id) implements PhysicalGpu {
    @Override
    public String model() {
      return "test";
    }

    @Override
    public MemorySize memory() {
      return MemorySize.ofGibibytes(1);
    }

    @Override
    public MemorySize usableMemory() {
      return memory();
    }

    @Override
    public String provider() {
      return "test";
    }
  }

  /** Its initializer waits, and a thread that waits inside one is pinned on every JDK. */
  private static final class Control {
    static {
      LockSupport.parkNanos(20_000_000);
    }

    static void run() {}
  }

  /** Waits inside the call until it is cancelled, or for a moment. */
  private static final class Batch implements PreemptibleCall<Integer> {
    private final Semaphore cancelled = new Semaphore(0);

    @Override
    public Integer call() throws Exception {
      attempts.incrementAndGet();
      cancelled.drainPermits();
      if (cancelled.tryAcquire(200, TimeUnit.MICROSECONDS)) {
        throw new IllegalStateException("cancelled");
      }
      return 1;
    }

    @Override
    public void cancel() {
      cancelled.release();
    }
  }

  public static void main(String[] args) throws Exception {
    try (RecordingStream recording = new RecordingStream()) {
      recording.enable(PINNED).withThreshold(Duration.ZERO).withStackTrace();
      recording.onEvent(PINNED, VirtualThreads::note);
      recording.startAsync();
      Thread.ofVirtual().start(Control::run).join();
      run();
      recording.stop(); // delivers what was recorded
    }
    pinned.forEach(System.out::println);
    failures.forEach(failure -> failure.printStackTrace(System.out));
    System.out.printf(
        "threads=%d completed=%d timedOut=%d interrupted=%d attempts=%d failed=%d pinned=%d"
            + " control=%b%n",
        CROWD,
        completed.get(),
        timedOut.get(),
        interrupted.get(),
        attempts.get(),
        failures.size(),
        pinned.size(),
        pinnedByControl.get() > 0);
    int ended = completed.get() + timedOut.get() + interrupted.get();
    boolean good = ended == CROWD && failures.isEmpty() && pinned.isEmpty();
    System.exit(good && pinnedByControl.get() > 0 ? 0 : 1);
  }

  private static void note(RecordedEvent event) {
    String text = event.toString();
    if (event.getStackTrace() == null) {
      pinned.add(text);
      return;
    }
    List<RecordedFrame> frames = event.getStackTrace().getFrames();
    if (frames.stream().anyMatch(f -> f.getMethod().getType().getName().startsWith("dev.vgpu."))) {
      pinned.add(text);
    }
    if (frames.stream().anyMatch(f -> f.getMethod().getType().getName().endsWith("Control"))) {
      pinnedByControl.incrementAndGet();
    }
  }

  private static VirtualGpu acquire(GpuPool pool, String name, PreemptionClass preemptionClass) {
    return pool.acquire(
        VirtualGpuRequest.builder()
            .name(name)
            .memory(MemorySize.ofMebibytes(100))
            .policy(SharePolicy.BURST_SHARE)
            .computePercent(40)
            .preemptionClass(preemptionClass)
            .maxConcurrentCalls(8)
            .build());
  }

  private static void run() throws InterruptedException {
    List<Gpu> gpus = List.of(new Gpu(new GpuId("test")));
    try (GpuPool pool = GpuPool.open(GpuPoolOptions.builder().gpus(gpus).build())) {
      List<VirtualGpu> tenants = new ArrayList<>();
      for (PreemptionClass preemptionClass : PreemptionClass.values()) {
        tenants.add(acquire(pool, preemptionClass.name(), preemptionClass));
      }
      CountDownLatch start = new CountDownLatch(1);
      List<Thread> threads = new ArrayList<>();
      for (int i = 0; i < CROWD; i++) {
        int number = i;
        threads.add(Thread.ofVirtual().start(() -> live(number, tenants, start)));
      }
      start.countDown();
      for (int i = 0; i < CROWD; i++) {
        if (kind(i) == 4) {
          threads.get(i).interrupt();
        }
      }
      for (Thread thread : threads) {
        if (!thread.join(Duration.ofSeconds(PATIENCE_S))) {
          failures.add(new IllegalStateException("still runs: " + thread));
          return;
        }
      }
      for (VirtualGpu tenant : tenants) {
        if (tenant.usage().running() != 0
            || tenant.usage().waiting() != 0
            || tenant.usage().memoryReserved().bytes() != 0) {
          failures.add(new IllegalStateException("left behind: " + tenant.usage()));
        }
      }
    }
  }

  private static int kind(int number) {
    return number % 6;
  }

  private static void live(int number, List<VirtualGpu> tenants, CountDownLatch start) {
    try {
      start.await();
      VirtualGpu tenant = tenants.get(number / 6 % tenants.size());
      use(number, tenant);
      completed.incrementAndGet();
    } catch (GpuTimeoutException e) {
      timedOut.incrementAndGet();
    } catch (InterruptedException e) {
      interrupted.incrementAndGet();
    } catch (Throwable e) {
      failures.add(e);
    }
  }

  private static void use(int number, VirtualGpu tenant) throws Exception {
    Random random = new Random(number);
    switch (kind(number)) {
      case 0 -> tenant.call(() -> pause(random));
      case 1 -> tenant.call(new Batch());
      case 2 -> {
        try (GpuTurn turn = tenant.enter()) {
          pause(random);
          tenant.call(() -> pause(random));
        }
      }
      case 3 ->
          tenant.call(
              () -> pause(random), CallOptions.ofTimeout(Duration.ofMillis(random.nextInt(20))));
      case 4 -> tenant.call(() -> pause(random));
      default ->
          tenant.call(
              () -> pause(random),
              CallOptions.ofMemory(MemorySize.ofMebibytes(1 + random.nextInt(60))));
    }
  }

  /** Waits inside the call, or goes on at once. */
  private static int pause(Random random) {
    if (random.nextInt(4) == 0) {
      LockSupport.parkNanos(50_000);
    }
    return 1;
  }
}
