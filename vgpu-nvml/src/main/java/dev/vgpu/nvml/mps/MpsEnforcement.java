package dev.vgpu.nvml.mps;

import dev.vgpu.GpuId;
import dev.vgpu.PhysicalGpu;
import dev.vgpu.VgpuException;
import dev.vgpu.VirtualGpuRequest;
import dev.vgpu.spi.EnforcedLease;
import dev.vgpu.spi.Enforcement;
import java.nio.file.Path;
import java.util.Map;
import java.util.Optional;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.Executors;
import java.util.concurrent.RejectedExecutionException;
import java.util.concurrent.ScheduledExecutorService;
import java.util.concurrent.TimeUnit;
import java.util.function.Function;

/** MPS at work for the seat's holder. Safe for use by several threads. */
final class MpsEnforcement implements Enforcement {
  private static final long SUPERVISE_MS = 2_000;
  private static final long STOP_MS = 6_000;

  private final Path directory;
  private final Enforcement beneath;
  private final Function<PhysicalGpu, MpsTool> tools;
  private final Map<GpuId, MpsGpu> gpus = new ConcurrentHashMap<>();
  private final ScheduledExecutorService supervisor =
      Executors.newSingleThreadScheduledExecutor(
          task -> {
            Thread thread = new Thread(task, "vgpu-mps");
            thread.setDaemon(true);
            return thread;
          });

  /**
   * Makes one.
   *
   * @param superviseMs how often daemons are looked at
   */
  MpsEnforcement(
      Path runDirectory,
      Enforcement beneath,
      Function<PhysicalGpu, MpsTool> tools,
      long superviseMs) {
    this.directory = runDirectory.toAbsolutePath().resolve("mps");
    this.beneath = beneath;
    this.tools = tools;
    var ignored =
        supervisor.scheduleWithFixedDelay(
            this::supervise, superviseMs, superviseMs, TimeUnit.MILLISECONDS);
  }

  MpsEnforcement(Path runDirectory, Enforcement beneath, Function<PhysicalGpu, MpsTool> tools) {
    this(runDirectory, beneath, tools, SUPERVISE_MS);
  }

  private void supervise() {
    gpus.values().forEach(MpsGpu::supervise);
  }

  private MpsGpu gpu(PhysicalGpu gpu) {
    return gpus.computeIfAbsent(
        gpu.id(),
        id -> {
          MpsDaemon daemon = new MpsDaemon(tools.apply(gpu), directory, id);
          return new MpsGpu(daemon, MpsTerms.mostClients(Optional.empty()), () -> stop(id));
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

  /** The daemons go on, for the programs and for the next holder of the seat. */
  @Override
  public void close() {
    supervisor.shutdown(); // a daemon that nobody needs any more is still stopped
    try {
      boolean ignored = supervisor.awaitTermination(STOP_MS, TimeUnit.MILLISECONDS);
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
    }
  }
}
