package dev.vgpu.cuda.hook;

import dev.vgpu.VgpuException;
import dev.vgpu.cuda.files.HookLibrary;
import dev.vgpu.cuda.files.Preloads;
import dev.vgpu.cuda.layout.HookEnvironment;
import dev.vgpu.cuda.layout.ShmLayout;
import dev.vgpu.cuda.pages.LeasePages;
import dev.vgpu.cuda.pages.PageChanger;
import dev.vgpu.cuda.pages.Wake;
import dev.vgpu.cuda.process.NanoClock;
import dev.vgpu.cuda.process.ProcFiles;
import dev.vgpu.cuda.process.ProcessLife;
import dev.vgpu.files.FileAccess;
import dev.vgpu.request.VirtualGpuRequest;
import dev.vgpu.spi.EnforcedLease;
import dev.vgpu.spi.Enforcement;
import dev.vgpu.watch.PhysicalGpu;
import java.io.IOException;
import java.nio.file.Path;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.concurrent.Executor;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.ThreadPoolExecutor;
import java.util.concurrent.TimeUnit;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/** The hook backend in the process that holds the seat. Safe for use by several threads. */
public final class HookEnforcement implements Enforcement {
  private static final Logger log = LoggerFactory.getLogger(HookEnforcement.class);

  /** A lease's id and a terminating zero must fit into a message. */
  private static final int MOST_ID_BYTES = ShmLayout.Message.LEASE_LENGTH - 1;

  private static final long IDLE_THREAD_SECONDS = 5;
  private static final long LONGEST_END_SECONDS = 1;

  private final Path runDirectory;
  private final HookServer server;
  private final NanoClock clock;
  private final ProcessLife life;
  private final Wake wake;
  private final Preloads preloads;
  private final ContextMemory contextMemory;
  private final long startTime;
  private final boolean expressLanes;
  private final boolean level2;
  private final byte[] secretKey;
  private final PageChanger changer;
  private final Map<String, ExpressLane> lanes = new HashMap<>();
  private final ThreadPoolExecutor mapsReader =
      new ThreadPoolExecutor(
          1,
          1,
          IDLE_THREAD_SECONDS,
          TimeUnit.SECONDS,
          new LinkedBlockingQueue<>(),
          task -> {
            Thread thread = new Thread(task, "vgpu-hook-maps");
            thread.setDaemon(true);
            return thread;
          });

  /** If so, another process decides: no lease begins any more. */
  private boolean closed;

  /** Starts the server's thread; the rest starts with the first lease. */
  public HookEnforcement(
      Path runDirectory,
      Preloads preloads,
      ContextMemory contextMemory,
      boolean expressLanes,
      boolean level2,
      NanoClock clock,
      ProcFiles proc,
      Wake wake,
      Map<String, String> environment) {
    this.runDirectory = runDirectory;
    this.preloads = preloads;
    this.contextMemory = contextMemory;
    this.expressLanes = expressLanes;
    this.level2 = level2;
    this.clock = clock;
    this.life = proc;
    this.changer =
        new PageChanger(() -> HookLibrary.checkpointProgram(environment).in(runDirectory));
    this.wake = wake;
    mapsReader.allowCoreThreadTimeOut(true);
    this.startTime = proc.startTime(ProcessHandle.current().pid());
    try {
      FileAccess access = FileAccess.of(runDirectory);
      this.secretKey = SlotSecrets.key(runDirectory);
      this.server = new HookServer(runDirectory.resolve("hook.sock"), access, clock, wake);
    } catch (IOException e) {
      throw new VgpuException(
          "cannot use the run directory: " + e.getMessage() + " directory=" + runDirectory, e);
    }
    boolean started = false;
    try {
      server.start();
      started = true;
    } finally {
      if (!started) {
        server.close();
      }
    }
  }

  @Override
  public EnforcedLease prepare(
      String id,
      Path directory,
      PhysicalGpu gpu,
      VirtualGpuRequest request,
      EnforcedLease.Listener listener) {
    if (id.length() > MOST_ID_BYTES) {
      throw new VgpuException("a lease's id is too long: id=" + id + " at most=" + MOST_ID_BYTES);
    }
    contextMemory
        .lack(gpu, request.memory())
        .ifPresent(
            lack -> {
              throw new VgpuException(lack);
            });
    synchronized (this) {
      if (closed) {
        throw closed(id);
      }
    }
    wake.prepare();
    changer.prepare();
    Map<String, String> environment = environment(id, request);
    LeasePages pages = LeasePages.in(directory, changer);
    HookLease lease =
        HookLease.on(
            pages, id, this, lane(gpu, request), request.preemptionClass(), listener, environment);
    long contextBytes = contextMemory.of(gpu);
    synchronized (this) {
      if (closed) {
        lease.release();
        throw closed(id);
      }
      long pid = ProcessHandle.current().pid();
      lease.begin(request, pages.adopted(), contextBytes, pid, startTime);
      server.add(lease);
    }
    return lease;
  }

  private static VgpuException closed(String id) {
    return new VgpuException("the hook is closed: this process has given the seat up: id=" + id);
  }

  /**
   * {@return a GPU's express lane; null if there is none, so that only the seat's grants decide} A
   * lease on several GPUs has none: its processes could obey only one GPU's lane.
   */
  private synchronized @Nullable ExpressLane lane(PhysicalGpu gpu, VirtualGpuRequest request) {
    if (!expressLanes || request.gpuCount() > 1) {
      return null;
    }
    String name = gpu.id().value();
    ExpressLane lane = lanes.get(name);
    if (lane == null) {
      try {
        lane = ExpressLane.open(runDirectory, name, wake, level2);
      } catch (VgpuException e) {
        log.warn("{}; only the seat's grants apply", e.getMessage());
        return null;
      }
      lanes.put(name, lane);
    }
    return lane;
  }

  private Map<String, String> environment(String id, VirtualGpuRequest request) {
    Map<String, String> environment = new LinkedHashMap<>();
    environment.put("LD_PRELOAD", preloads.variable(runDirectory));
    environment.put(HookEnvironment.VGPU_RUN_DIR, runDirectory.toString());
    environment.put(HookEnvironment.VGPU_LEASE, id);
    environment.put(
        HookEnvironment.VGPU_FAILURE_MODE, request.failureMode().name().toLowerCase(Locale.ROOT));
    return Map.copyOf(environment);
  }

  /** {@return whether processes of offline leases may be stopped inside kernels} */
  boolean isLevel2Allowed() {
    return level2;
  }

  /** {@return the key of the slots' secrets; callers must not modify it} */
  byte[] secretKey() {
    return secretKey;
  }

  /** {@return the executor that reads the mappings of tenants' processes, one at a time} */
  Executor mapsReader() {
    return mapsReader;
  }

  NanoClock clock() {
    return clock;
  }

  ProcessLife life() {
    return life;
  }

  Wake wake() {
    return wake;
  }

  /** Removes a lease that has ended. */
  void forget(String id) {
    server.remove(id);
  }

  @Override
  public void whenServing(Runnable answers) {
    server.whenServing(answers);
  }

  @Override
  public void close() {
    synchronized (this) {
      closed = true;
    }
    server.close();
    endMapsReader();
    server.leases().forEach(HookLease::release);
    changer.close();
    synchronized (this) {
      lanes.values().forEach(ExpressLane::close);
    }
    wake.close();
  }

  /** Waits for a while: a closed class loader must not have a running thread. */
  private void endMapsReader() {
    List<Runnable> ignored = mapsReader.shutdownNow();
    boolean interrupted = Thread.interrupted();
    try {
      boolean ended = mapsReader.awaitTermination(LONGEST_END_SECONDS, TimeUnit.SECONDS);
      log.debug("mappings are read no more: ended={} left={}", ended, ignored.size());
    } catch (InterruptedException e) {
      interrupted = true;
    }
    if (interrupted) {
      Thread.currentThread().interrupt();
    }
  }
}
