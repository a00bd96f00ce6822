package dev.vgpu.core.pool;

import dev.vgpu.VgpuException;
import dev.vgpu.backend.BackendStatus;
import dev.vgpu.request.Capabilities;
import dev.vgpu.request.GpuPart;
import dev.vgpu.request.VirtualGpuRequest;
import dev.vgpu.spi.EnforcedLease;
import dev.vgpu.spi.Enforcement;
import dev.vgpu.spi.EnforcementBackend;
import dev.vgpu.spi.ForwardingLease;
import dev.vgpu.spi.ProcessAttachment;
import dev.vgpu.watch.PhysicalGpu;
import java.nio.file.Path;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.function.Consumer;
import java.util.function.Function;
import java.util.function.Predicate;

/** A spatial backend on top of the fake one, configured by the test. */
final class StagedBackend implements EnforcementBackend {
  static final Capabilities CAPABILITIES =
      Capabilities.builder()
          .memory(Capabilities.Memory.EXACT)
          .compute(Capabilities.Compute.SPATIAL)
          .faultIsolation(Capabilities.FaultIsolation.ISOLATED)
          .worksFor(Capabilities.Scope.PROCESS)
          .build();

  /** The prepared leases, in order; a lease that was taken over occurs twice. */
  final List<String> prepared = new CopyOnWriteArrayList<>();

  volatile boolean whenGranted = true;
  volatile Optional<String> obstacle = Optional.empty();
  volatile Optional<String> lack = Optional.empty();
  volatile Optional<String> unable = Optional.empty();
  volatile List<GpuPart> parts = List.of();
  volatile boolean failing;

  /** Runs when a request is looked at, before anything is said. */
  volatile Consumer<VirtualGpuRequest> beforeLack = request -> {};

  /** Runs when a lease is prepared, before anything is done. */
  volatile Runnable beforePrepare = () -> {};

  /** Runs when the backend is opened, before anything is done. */
  volatile Runnable beforeOpen = () -> {};

  /** Runs when somebody asks what it is capable of. */
  volatile Runnable beforeTold = () -> {};

  /** How often it was closed. */
  final AtomicInteger closed = new AtomicInteger();

  /** Runs when a lease is closed, before anything is done. */
  volatile Runnable beforeClose = () -> {};

  /** Moves leases, given which may be moved. */
  volatile Function<Predicate<String>, List<String>> moves = mayMove -> List.of();

  /** How many leases are being prepared or closed now, and the most that were so at once. */
  private final AtomicInteger working = new AtomicInteger();

  final AtomicInteger mostWorking = new AtomicInteger();

  @Override
  public String name() {
    return "staged";
  }

  @Override
  public int cost() {
    return 300;
  }

  @Override
  public BackendStatus status() {
    return BackendStatus.ofAvailable(name(), CAPABILITIES);
  }

  @Override
  public Capabilities capabilities() {
    beforeTold.run();
    return CAPABILITIES;
  }

  @Override
  public Optional<Capabilities> needs() {
    return Optional.of(Capabilities.builder().memory(Capabilities.Memory.EXACT).build());
  }

  @Override
  public boolean preparesWhenGranted() {
    return whenGranted;
  }

  @Override
  public boolean serves(PhysicalGpu gpu) {
    return gpu.provider().equals("test");
  }

  @Override
  public Optional<String> obstacle(PhysicalGpu gpu) {
    return obstacle;
  }

  @Override
  public List<GpuPart> parts(PhysicalGpu gpu) {
    return parts;
  }

  @Override
  public Optional<String> unable(PhysicalGpu gpu, VirtualGpuRequest request) {
    return unable;
  }

  @Override
  public Enforcement open(Path runDirectory) {
    throw new VgpuException("it stands on another");
  }

  @Override
  public Enforcement open(Path runDirectory, Enforcement beneath) {
    beforeOpen.run();
    return new Enforcement() {
      @Override
      public EnforcedLease prepare(
          String id,
          Path directory,
          PhysicalGpu gpu,
          VirtualGpuRequest request,
          EnforcedLease.Listener listener) {
        during(beforePrepare);
        if (failing) {
          throw new VgpuException("the device said no");
        }
        prepared.add(id);
        return new ForwardingLease(beneath.prepare(id, directory, gpu, request, listener)) {
          @Override
          public Map<String, String> environment() {
            Map<String, String> variables = new HashMap<>(super.environment());
            variables.put("PART", "7");
            return variables;
          }

          @Override
          public void close() {
            during(beforeClose);
            super.close();
          }
        };
      }

      @Override
      public List<String> makeRoom(
          PhysicalGpu gpu, VirtualGpuRequest request, Predicate<String> mayMove) {
        return moves.apply(mayMove);
      }

      @Override
      public Optional<String> lack(PhysicalGpu gpu, VirtualGpuRequest request) {
        beforeLack.accept(request);
        return lack;
      }

      @Override
      public void close() {
        closed.incrementAndGet();
      }
    };
  }

  private void during(Runnable what) {
    mostWorking.accumulateAndGet(working.incrementAndGet(), Math::max);
    try {
      what.run();
    } finally {
      working.decrementAndGet();
    }
  }

  @Override
  public ProcessAttachment attachThisProcess(Map<String, String> environment) {
    throw new VgpuException("it is too late for this process");
  }
}
