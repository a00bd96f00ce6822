import dev.vgpu.CallOptions;
import dev.vgpu.request.GpuId;
import dev.vgpu.GpuPool;
import dev.vgpu.GpuPoolOptions;
import dev.vgpu.GpuTimeoutException;
import dev.vgpu.GpuTurn;
import dev.vgpu.request.MemorySize;
import dev.vgpu.watch.PhysicalGpu;
import dev.vgpu.PreemptibleCall;
import dev.vgpu.request.PreemptionClass;
import dev.vgpu.request.SharePolicy;
import dev.vgpu.VirtualGpu;
import dev.vgpu.request.VirtualGpuRequest;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Queue;
import java.util.Random;
import java.util.concurrent.Callable;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.Semaphore;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.locks.LockSupport;
import jdk.jfr.Recording;
import jdk.jfr.consumer.RecordedEvent;
import jdk.jfr.consumer.RecordedFrame;
import jdk.jfr.consumer.RecordingFile;

/**
 * Thousands of virtual threads use three virtual GPUs. Prints how they ended and whether any was
 * pinned inside vgpu. VirtualThreadsTest runs it from source, on a JDK that has virtual threads.
 */
public final class VirtualThreads {
  private static final long SEED = Long.parseLong(System.getenv("VGPU_TEST_SEED"));
  private static final int CROWD = Integer.getInteger("crowd", 3000);
  private static final int ROUNDS = 3;
  private static final int KINDS = 6;
  private static final int INTERRUPTED = 4;
  private static final int PREEMPTIONS = 50;
  private static final long PATIENCE_S = 40;
  private static final String PINNED = "jdk.VirtualThreadPinned";

  private static final AtomicInteger completed = new AtomicInteger();
  private static final AtomicInteger timedOut = new AtomicInteger();
  private static final AtomicInteger interrupted = new AtomicInteger();
  private static final AtomicInteger attempts = new AtomicInteger();
  private static final AtomicInteger preempted = new AtomicInteger();
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

  /**
   * A control: its initializer waits, and a thread that waits inside one is pinned on every JDK.
   */
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

  /**
   * Runs the test.
   *
   * @param args the file for the recording
   */
  public static void main(String[] args) throws Exception {
    try (Recording recording = new Recording()) {
      recording.enable(PINNED).withThreshold(Duration.ZERO).withStackTrace();
      withTenants(VirtualThreads::warmUp);
      recording.start();
      Thread.ofVirtual().start(Control::run).join();
      withTenants(VirtualThreads::preempt);
      withTenants(tenants -> crowd(tenants, CROWD));
      recording.stop();
      recording.dump(Path.of(args[0]));
    }
    for (RecordedEvent event : RecordingFile.readAllEvents(Path.of(args[0]))) {
      if (event.getEventType().getName().equals(PINNED)) { // the file also holds vgpu's own events
        note(event);
      }
    }
    pinned.forEach(System.out::println);
    failures.forEach(failure -> failure.printStackTrace(System.out));
    System.out.printf(
        "threads=%d completed=%d timedOut=%d interrupted=%d attempts=%d preempted=%d failed=%d"
            + " pinned=%d control=%b%n",
        CROWD,
        completed.get(),
        timedOut.get(),
        interrupted.get(),
        attempts.get(),
        preempted.get(),
        failures.size(),
        pinned.size(),
        pinnedByControl.get() > 0);
    int ended = completed.get() + timedOut.get() + interrupted.get();
    boolean good = ended == CROWD && failures.isEmpty() && pinned.isEmpty();
    System.exit(good && preempted.get() >= PREEMPTIONS && pinnedByControl.get() > 0 ? 0 : 1);
  }

  /**
   * Records a pinned thread, unless it waits for the JDK to load a class, or for a lock inside the
   * JDK's own handling of interrupts.
   */
  private static void note(RecordedEvent event) {
    if (event.getStackTrace() == null) {
      pinned.add(event.toString());
      return;
    }
    List<String> frames =
        event.getStackTrace().getFrames().stream()
            .map(RecordedFrame::getMethod)
            .map(method -> method.getType().getName() + "." + method.getName())
            .toList();
    boolean isOfJdk =
        frames.get(0).startsWith("jdk.internal.loader.")
            || frames.get(0).equals("java.lang.VirtualThread.getAndClearInterrupt");
    if (frames.contains(Control.class.getName() + ".<clinit>")) {
      pinnedByControl.incrementAndGet();
    } else if (!isOfJdk && frames.stream().anyMatch(frame -> frame.startsWith("dev.vgpu."))) {
      pinned.add(event.toString());
    }
  }

  private interface Part {
    void run(List<VirtualGpu> tenants) throws Exception;
  }

  private static void withTenants(Part part) throws Exception {
    List<Gpu> gpus = List.of(new Gpu(new GpuId("test")));
    try (GpuPool pool = GpuPool.open(GpuPoolOptions.builder().scope(GpuPoolOptions.Scope.THIS_JVM).gpus(gpus).build())) {
      List<VirtualGpu> tenants = new ArrayList<>();
      for (PreemptionClass preemptionClass : PreemptionClass.values()) {
        tenants.add(acquire(pool, preemptionClass));
      }
      part.run(tenants);
      for (VirtualGpu tenant : tenants) {
        if (tenant.usage().running() != 0
            || tenant.usage().waiting() != 0
            || tenant.usage().memoryReserved().bytes() != 0) {
          failures.add(new IllegalStateException("left behind: " + tenant.usage()));
        }
      }
    }
  }

  private static VirtualGpu acquire(GpuPool pool, PreemptionClass preemptionClass) {
    return pool.acquire(
        VirtualGpuRequest.builder()
            .name(preemptionClass.name())
            .memory(MemorySize.ofMebibytes(100))
            .policy(SharePolicy.BURST_SHARE)
            .computePercent(40)
            .preemptionClass(preemptionClass)
            .maxConcurrentCalls(8)
            .build());
  }

  /** Loads and initializes each class once in advance, because the JDK pins a thread for that. */
  private static void warmUp(List<VirtualGpu> tenants) throws Exception {
    preempt(tenants);
    crowd(tenants, CROWD / 5);
    for (AtomicInteger count : List.of(completed, timedOut, interrupted, attempts, preempted)) {
      count.set(0);
    }
  }

  /** Each online call cancels an offline call, which runs to its end after the last one. */
  private static void preempt(List<VirtualGpu> tenants) throws Exception {
    Semaphore started = new Semaphore(0);
    Semaphore cancelled = new Semaphore(0);
    AtomicInteger left = new AtomicInteger(PREEMPTIONS);
    PreemptibleCall<Integer> batch =
        new PreemptibleCall<>() {
          @Override
          public Integer call() throws Exception {
            started.release();
            if (left.get() > 0) {
              cancelled.acquire();
              throw new IllegalStateException("cancelled");
            }
            return 1;
          }

          @Override
          public void cancel() {
            preempted.incrementAndGet();
            left.decrementAndGet();
            cancelled.release();
          }
        };
    CallOptions options = CallOptions.builder().maxPreemptions(PREEMPTIONS).build();
    Thread offline =
        Thread.ofVirtual().start(() -> attempt(() -> tenants.get(2).call(batch, options)));
    Thread online =
        Thread.ofVirtual()
            .start(
                () -> {
                  for (int i = 0; i < PREEMPTIONS; i++) {
                    started.acquireUninterruptibly();
                    attempt(() -> tenants.get(0).call(() -> 1));
                  }
                });
    join(offline);
    join(online);
  }

  private static void attempt(Callable<?> work) {
    try {
      work.call();
    } catch (Exception e) {
      failures.add(e);
    }
  }

  private static void join(Thread thread) throws InterruptedException {
    if (!thread.join(Duration.ofSeconds(PATIENCE_S))) {
      throw new IllegalStateException("still runs: " + thread);
    }
  }

  private static void crowd(List<VirtualGpu> tenants, int size) throws InterruptedException {
    List<Thread> threads = new ArrayList<>();
    for (int i = 0; i < size; i++) {
      int number = i;
      threads.add(Thread.ofVirtual().start(() -> live(number, tenants)));
    }
    for (int i = 0; i < size; i++) {
      if (i % KINDS == INTERRUPTED) {
        threads.get(i).interrupt();
      }
    }
    for (Thread thread : threads) {
      join(thread);
    }
  }

  private static void live(int number, List<VirtualGpu> tenants) {
    Random random = new Random(SEED + number);
    try {
      for (int i = 0; i < ROUNDS; i++) {
        use(number, tenants.get(random.nextInt(tenants.size())));
        Thread.sleep(Duration.ofNanos(random.nextInt(10_000_000)));
      }
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
    Random random = new Random(SEED + number);
    switch (number % KINDS) {
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
      case INTERRUPTED -> tenant.call(() -> pause(random));
      default ->
          tenant.call(
              () -> pause(random),
              CallOptions.ofMemory(MemorySize.ofMebibytes(1 + random.nextInt(60))));
    }
  }

  /** Waits inside the call, or continues at once. */
  private static int pause(Random random) {
    if (random.nextInt(4) == 0) {
      LockSupport.parkNanos(50_000);
    }
    return 1;
  }
}
