package dev.vgpu.cli;

import static java.nio.charset.StandardCharsets.UTF_8;
import static org.mockito.Mockito.mock;
import static org.mockito.Mockito.when;

import dev.vgpu.GpuPool;
import dev.vgpu.backend.BackendStatus;
import dev.vgpu.cli.command.CliContext;
import dev.vgpu.cli.console.Console;
import dev.vgpu.cli.time.NanoClock;
import dev.vgpu.request.Capabilities;
import dev.vgpu.request.GpuId;
import dev.vgpu.request.MemorySize;
import dev.vgpu.request.PreemptionClass;
import dev.vgpu.request.VirtualGpuRequest;
import dev.vgpu.watch.GpuHealth;
import dev.vgpu.watch.GpuLease;
import dev.vgpu.watch.GpuState;
import dev.vgpu.watch.GpuUsage;
import dev.vgpu.watch.PhysicalGpu;
import dev.vgpu.watch.SharingMode;
import java.io.ByteArrayOutputStream;
import java.io.PrintStream;
import java.time.Duration;
import java.time.Instant;
import java.util.List;
import java.util.Optional;
import java.util.OptionalDouble;
import picocli.CommandLine;

/** Pools and leases whose answers a test defines. */
public final class Fakes {
  private Fakes() {}

  /** A clock on which waiting takes no time. */
  public static final class SkippingClock implements NanoClock {
    private long nowNs = 1_000_000_000;

    @Override
    public long nowNs() {
      return nowNs;
    }

    @Override
    public Instant wallTime() {
      return Instant.ofEpochSecond(1_800_000_000L).plusNanos(nowNs);
    }

    @Override
    public void sleepUntil(long deadlineNs) {
      nowNs = Math.max(nowNs, deadlineNs);
    }
  }

  public record Lease(String id, GpuId gpu, VirtualGpuRequest request, long pid, GpuUsage usage)
      implements GpuLease {
    @Override
    public double entitledPercent() {
      return request.computePercent().orElse(25);
    }

    @Override
    public List<Long> processes() {
      return List.of(11L, 12L, 13L, 14L, 15L);
    }

    @Override
    public Optional<Capabilities.Preemption> preemption() {
      return preemptionReason().map(reason -> Capabilities.Preemption.BETWEEN_KERNELS);
    }

    @Override
    public Optional<String> preemptionReason() {
      return request.preemptionClass() == PreemptionClass.OFFLINE
          ? Optional.of("the driver refused to stop or to resume its channels: pid=11")
          : Optional.empty();
    }
  }

  public static Lease lease(VirtualGpuRequest request, Duration gpuTime, MemorySize used) {
    GpuUsage usage = mock(GpuUsage.class);
    when(usage.gpuTime()).thenReturn(gpuTime);
    when(usage.memoryUsed()).thenReturn(used);
    when(usage.memoryReserved()).thenReturn(MemorySize.ZERO);
    when(usage.processes()).thenReturn(2);
    when(usage.waiting()).thenReturn(1);
    when(usage.preemptions()).thenReturn(12L);
    when(usage.slowdown()).thenReturn(OptionalDouble.of(1.25));
    return new Lease(
        request.name() + "-1", new GpuId("GPU-1"), request, ProcessHandle.current().pid(), usage);
  }

  public static PhysicalGpu gpu(String id) {
    PhysicalGpu gpu = mock(PhysicalGpu.class);
    when(gpu.id()).thenReturn(new GpuId(id));
    when(gpu.model()).thenReturn("Test GPU");
    when(gpu.memory()).thenReturn(MemorySize.ofGibibytes(16));
    when(gpu.usableMemory()).thenReturn(MemorySize.ofGibibytes(15));
    when(gpu.provider()).thenReturn("test");
    return gpu;
  }

  /** A GPU with several tenants, one of which is held back. */
  public static GpuState state(long switches) {
    GpuState state = mock(GpuState.class);
    when(state.gpu()).thenReturn(new GpuId("GPU-1"));
    when(state.mode()).thenReturn(SharingMode.STRICT);
    when(state.reason())
        .thenReturn(
            "a-model-with-a-long-name-1 is at its fixed share; offline tenants get the rest");
    when(state.holder()).thenReturn(Optional.of("batch-1"));
    when(state.heldBack()).thenReturn(List.of("a-model-with-a-long-name-1"));
    when(state.turnLength()).thenReturn(Duration.ofNanos(2_500_000));
    when(state.switches()).thenReturn(switches);
    when(state.memoryFree()).thenReturn(MemorySize.ofGibibytes(3));
    when(state.memoryLowWatermark()).thenReturn(MemorySize.ofGibibytes(1));
    when(state.memoryHighWatermark()).thenReturn(MemorySize.ofGibibytes(2));
    when(state.suspended()).thenReturn(List.of());
    when(state.health()).thenReturn(GpuHealth.HEALTHY);
    when(state.healthReason()).thenReturn("");
    return state;
  }

  /** {@return the command in a context that a test provides} */
  public static CommandLine commandLine(CliContext context, String... args) {
    return VgpuCommand.commandLine(context, args);
  }

  public static GpuPool pool() {
    PhysicalGpu gpu = gpu("GPU-1");
    GpuPool pool = mock(GpuPool.class);
    when(pool.gpus()).thenReturn(List.of(gpu));
    when(pool.leases()).thenReturn(List.of());
    when(pool.backends()).thenReturn(List.of(BackendStatus.ofAvailable("test")));
    return pool;
  }

  public static Console console(ByteArrayOutputStream out, ByteArrayOutputStream err) {
    return new Console(new PrintStream(out, true, UTF_8), new PrintStream(err, true, UTF_8));
  }
}
