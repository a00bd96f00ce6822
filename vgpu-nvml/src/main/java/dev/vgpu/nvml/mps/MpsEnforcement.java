package dev.vgpu.nvml.mps;

import dev.vgpu.VgpuException;
import dev.vgpu.request.GpuId;
import dev.vgpu.request.VirtualGpuRequest;
import dev.vgpu.spi.EnforcedLease;
import dev.vgpu.spi.Enforcement;
import dev.vgpu.watch.PhysicalGpu;
import java.nio.file.Path;
import java.util.Map;
import java.util.Optional;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.Executors;
import java.util.concurrent.RejectedExecutionException;
import java.util.concurrent.ScheduledExecutorService;
import java.util.concurrent.TimeUnit;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/** MPS in the process that holds the seat. Safe for use by several threads. */
final class MpsEnforcement implements Enforcement {
  /** The daemons' directory, in the run directory. */
  static final String DIRECTORY = "mps";

  private static final Logger log = LoggerFactory.getLogger(MpsEnforcement.class);
  private static final long SUPERVISE_MS = 2_000;
  private static final long STOP_MS = 6_000;

  private final Path directory;
  private final Enforcement beneath;
  private final Machine machine;
  private final Map<GpuId, MpsGpu> gpus = new ConcurrentHashMap<>();
  private final ScheduledExecutorService supervisor =
      Executors.newSingleThreadScheduledExecutor(
          task -> {
            Thread thread = new Thread(task, "vgpu-mps");
            thread.setDaemon(true);
            return thread;
          });

  /** What the enforcement needs to know of the machine. */
  interface Machine {
    /** The tool that belongs to a GPU's driver. */
    MpsTool tool(PhysicalGpu gpu);

    /** A tool for a daemon that an earlier holder of the seat left, whose GPU may be gone. */
    MpsTool anyTool();

    /** How many processes MPS can serve on a GPU at once. */
    int mostClients(GpuId gpu);
  }

  /**
   * Starts supervision.
   *
   * @param superviseMs the pause between two checks of the daemons
   */
  MpsEnforcement(Path runDirectory, Enforcement beneath, Machine machine, long superviseMs) {
    this.directory = directory(runDirectory);
    this.beneath = beneath;
    this.machine = machine;
    supervisor.execute(() -> guarded(this::stopLeftovers));
    var ignored =
        supervisor.scheduleWithFixedDelay(
            this::supervise, superviseMs, superviseMs, TimeUnit.MILLISECONDS);
  }

  MpsEnforcement(Path runDirectory, Enforcement beneath, Machine machine) {
    this(runDirectory, beneath, machine, SUPERVISE_MS);
  }

  static Path directory(Path runDirectory) {
    return runDirectory.toAbsolutePath().resolve(DIRECTORY);
  }

  private void supervise() {
    gpus.values().forEach(gpu -> guarded(gpu::supervise));
    guarded(this::stopLeftovers);
  }

  /** An error, even a lack of memory, may be gone at the next check, and is no other GPU's. */
  private static void guarded(Runnable check) {
    try {
      check.run();
    } catch (RuntimeException | Error e) {
      log.error("MPS cannot be looked after now, and this is tried again", e);
    }
  }

  /** Stops the daemons of leases that ended while no process held the seat. */
  private void stopLeftovers() {
    for (GpuId id : MpsDaemon.directories(directory)) {
      guarded(() -> stopIfLeft(id));
    }
  }

  private void stopIfLeft(GpuId id) {
    try {
      MpsGpu known = gpus.compute(id, (same, on) -> on == null ? stoppedUnlessUsed(id) : on);
      if (known != null) {
        known.stopIfLeft();
      }
    } catch (VgpuException e) {
      log.warn("an MPS control daemon that is left over cannot be stopped: gpu={}", id, e);
    }
  }

  /** {@return nothing to keep} The GPU's next lease needs the tool of the GPU's own driver. */
  private @Nullable MpsGpu stoppedUnlessUsed(GpuId id) {
    new MpsGpu(new MpsDaemon(machine.anyTool(), directory, id), 0, () -> {}).stopIfLeft();
    return null;
  }

  private MpsGpu gpu(PhysicalGpu gpu) {
    return gpus.computeIfAbsent(
        gpu.id(),
        id -> {
          MpsDaemon daemon = new MpsDaemon(machine.tool(gpu), directory, id);
          return new MpsGpu(daemon, machine.mostClients(id), () -> stop(id));
        });
  }

  private void stop(GpuId id) {
    MpsGpu unused = gpus.get(id);
    if (unused != null) {
      try {
        supervisor.execute(unused::stopIfUnused);
      } catch (RejectedExecutionException e) {
        unused.stopIfUnused(); // it is being closed
      }
    }
  }

  @Override
  public EnforcedLease prepare(
      String id,
      Path leaseDirectory,
      PhysicalGpu gpu,
      VirtualGpuRequest request,
      EnforcedLease.Listener listener) {
    Optional<String> unable = MpsTerms.unable(request);
    if (unable.isPresent()) {
      throw new VgpuException("MPS " + unable.get() + ": id=" + id);
    }
    MpsGpu on = gpu(gpu);
    return on.add(
        id,
        () ->
            new MpsLease(
                id,
                on,
                beneath.prepare(id, leaseDirectory, gpu, request, listener),
                request,
                listener));
  }

  @Override
  public Optional<String> lack(PhysicalGpu gpu, VirtualGpuRequest request) {
    MpsGpu on = gpus.get(gpu.id());
    return on == null ? Optional.empty() : on.lack(request);
  }

  /** The daemons keep running, for the programs and for the next holder of the seat. */
  @Override
  public void close() {
    supervisor.shutdown(); // already queued stops of unused daemons still run
    try {
      boolean ignored = supervisor.awaitTermination(STOP_MS, TimeUnit.MILLISECONDS);
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
    }
  }
}
