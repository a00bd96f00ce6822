package dev.vgpu.core.pool;

import dev.vgpu.VgpuException;
import dev.vgpu.backend.BackendStatus;
import dev.vgpu.request.Capabilities;
import dev.vgpu.request.MemorySize;
import dev.vgpu.request.VirtualGpuRequest;
import dev.vgpu.spi.EnforcedLease;
import dev.vgpu.spi.Enforcement;
import dev.vgpu.spi.EnforcementBackend;
import dev.vgpu.spi.MemoryMover;
import dev.vgpu.spi.ProcessAttachment;
import dev.vgpu.watch.PhysicalGpu;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.Semaphore;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.function.LongSupplier;
import java.util.function.Supplier;

/** A backend whose processes are simulated by the test. */
public final class FakeBackend implements EnforcementBackend {
  static final Capabilities CAPABILITIES =
      Capabilities.builder()
          .memory(Capabilities.Memory.EXACT)
          .compute(Capabilities.Compute.TURNS)
          .preemption(Capabilities.Preemption.BETWEEN_KERNELS)
          .worksFor(Capabilities.Scope.THIS_JVM, Capabilities.Scope.PROCESS)
          .build();

  final Map<String, FakeLease> leases = new ConcurrentHashMap<>();
  final List<Map<String, String>> attached = new CopyOnWriteArrayList<>();

  /** The lease that the current thread is bound to. */
  final ThreadLocal<String> bound = ThreadLocal.withInitial(() -> "none");

  final AtomicInteger binds = new AtomicInteger();

  /** A permit for each time that the backend was asked whether it serves. */
  public final Semaphore asked = new Semaphore(0);

  public volatile boolean hangs;

  volatile List<String> launcher = List.of();

  /** Runs when a lease is prepared, before anything is done. */
  volatile Runnable beforePrepare = () -> {};

  /** Runs when a holder of the seat closes the backend, before it is closed. */
  volatile Runnable beforeClose = () -> {};

  volatile Optional<String> unable = Optional.empty();

  /** Whether an earlier holder of the seat left something to clean up. */
  volatile boolean leftovers;

  volatile int opened;
  volatile int closed;

  @Override
  public String name() {
    return "fake";
  }

  @Override
  public BackendStatus status() {
    return BackendStatus.ofAvailable(name(), CAPABILITIES);
  }

  @Override
  public Capabilities capabilities() {
    return CAPABILITIES;
  }

  @Override
  public boolean serves(PhysicalGpu gpu) {
    return gpu.provider().equals("test");
  }

  @Override
  public boolean hasLeftovers(Path runDirectory) {
    return leftovers;
  }

  @Override
  public Optional<String> unable(PhysicalGpu gpu, VirtualGpuRequest request) {
    return unable;
  }

  @Override
  @SuppressWarnings("NonAtomicVolatileUpdate") // one test at a time
  public Enforcement open(Path runDirectory) {
    opened++;
    return new Enforcement() {
      @Override
      public void whenServing(Runnable answers) {
        asked.release();
        if (!hangs) {
          answers.run();
        }
      }

      @Override
      public EnforcedLease prepare(
          String id,
          Path directory,
          PhysicalGpu gpu,
          VirtualGpuRequest request,
          EnforcedLease.Listener listener) {
        beforePrepare.run();
        if (Files.exists(directory.resolve("damaged"))) {
          throw new VgpuException("the report file is damaged");
        }
        try {
          Files.writeString(directory.resolve("grant"), request.toString());
        } catch (IOException e) {
          throw new UncheckedIOException(e);
        }
        return leases.compute(
            id,
            (key, before) -> {
              FakeLease lease = new FakeLease(id, listener);
              lease.launcher = launcher;
              if (before != null) {
                lease.pids.addAll(before.pids); // they have attached to the new seat
                lease.gpuTimeNs = before.gpuTimeNs;
              }
              return lease;
            });
      }

      @Override
      public void close() {
        beforeClose.run();
        closed++;
      }
    };
  }

  @Override
  public ProcessAttachment attachThisProcess(Map<String, String> environment) {
    String id = environment.get("VGPU_LEASE");
    attached.add(environment);
    leases.get(id).attach(ProcessHandle.current().pid());
    return new ProcessAttachment() {
      @Override
      public void bindThread() {
        bound.set(id);
        binds.incrementAndGet();
      }

      @Override
      public void unbindThread() {
        bound.remove();
      }

      @Override
      public void close() {
        FakeLease lease = leases.get(id);
        if (lease.pids.contains(ProcessHandle.current().pid())) {
          lease.exit(ProcessHandle.current().pid());
        }
      }
    };
  }

  /** A lease: records the seat's orders, and simulates its processes. */
  static final class FakeLease implements EnforcedLease {
    volatile Runnable beforeOpen = () -> {};
    final String id;
    final Listener listener;
    final List<Long> pids = new CopyOnWriteArrayList<>();
    final List<String> orders = new ArrayList<>();
    volatile boolean open;
    volatile boolean busy;
    volatile boolean wants;
    volatile boolean revoked;
    volatile long gpuTimeNs;
    volatile long usedBytes;
    volatile int permille;
    volatile List<String> launcher = List.of();
    volatile LongSupplier passedThrough = () -> 0;
    volatile Supplier<List<Long>> visible = this::processes;
    volatile Optional<MemoryMover> mover = Optional.empty();

    FakeLease(String id, Listener listener) {
      this.id = id;
      this.listener = listener;
    }

    void attach(long pid) {
      pids.add(pid);
      listener.processes(pids.size());
    }

    void exit(long pid) {
      pids.remove(pid);
      busy = false;
      wants = false;
      listener.drained();
      listener.processes(pids.size());
    }

    void want() {
      wants = true;
      listener.wanted();
    }

    /** Starts work, which is allowed only while open. */
    void begin() {
      if (!open) {
        throw new IllegalStateException("begun while shut");
      }
      busy = true;
      wants = false;
    }

    @SuppressWarnings("NonAtomicVolatileUpdate") // by the test's thread only
    void end(long usedNs) {
      gpuTimeNs += usedNs;
      busy = false;
      listener.drained();
    }

    @Override
    public void open() {
      beforeOpen.run();
      open = true;
    }

    @Override
    public boolean shut() {
      open = false;
      return !busy;
    }

    @Override
    public int preempt() {
      return 0;
    }

    @Override
    public boolean hasWork() {
      return busy || wants;
    }

    @Override
    public long gpuTimeNs(long nowNs) {
      return gpuTimeNs;
    }

    @Override
    public void contended(boolean contended) {}

    @Override
    public long leastTurnNs() {
      return 0;
    }

    @Override
    public boolean tryResize(VirtualGpuRequest request, int entitledPermille) {
      if (request.memory().bytes() < usedBytes) {
        return false;
      }
      permille = entitledPermille;
      return true;
    }

    @Override
    public List<String> launcher() {
      return launcher;
    }

    @Override
    public Map<String, String> environment() {
      return Map.of("LD_PRELOAD", "/hook.so:${LD_PRELOAD}", "VGPU_LEASE", id);
    }

    @Override
    public MemorySize memoryUsed() {
      return MemorySize.ofBytes(usedBytes);
    }

    @Override
    public List<Long> processes() {
      return List.copyOf(pids);
    }

    @Override
    public List<Long> visibleProcesses() {
      return visible.get();
    }

    @Override
    public Optional<MemoryMover> mover() {
      return mover;
    }

    @Override
    public int waiting() {
      return wants ? 1 : 0;
    }

    @Override
    public long deniedAllocations() {
      return 3;
    }

    @Override
    public long launches() {
      return 5;
    }

    @Override
    public long passedThrough() {
      return passedThrough.getAsLong();
    }

    @Override
    public void close() {
      revoked = true;
    }
  }
}
