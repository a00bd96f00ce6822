package dev.vgpu.nvml.mig;

import dev.vgpu.GpuDriverException;
import dev.vgpu.GpuId;
import dev.vgpu.PhysicalGpu;
import dev.vgpu.VgpuException;
import dev.vgpu.VirtualGpuRequest;
import dev.vgpu.nvml.NvmlGpu;
import dev.vgpu.nvml.mig.plan.MigGeometry;
import dev.vgpu.nvml.mig.plan.MigProfile;
import dev.vgpu.spi.EnforcedLease;
import dev.vgpu.spi.Enforcement;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.concurrent.Executors;
import java.util.concurrent.ScheduledExecutorService;
import java.util.concurrent.TimeUnit;
import java.util.function.BooleanSupplier;
import java.util.function.Predicate;
import java.util.function.Supplier;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * MIG at work for the seat's holder. Safe for use by several threads.
 *
 * <p>Of each instance there is a record in the run directory, written before it is made and removed
 * after it is destroyed. A record whose lease is gone says what to destroy. An instance without a
 * record, or in a record's list of those that were there before, is somebody else's. One that may
 * be theirs, at the place of one that we were about to make or to destroy when this process's
 * predecessor died, is left alone while it has a compute instance; else it is looked at twice. So
 * one of theirs is taken for ours only if it is of the same kind, at the same place, made since
 * that death, and has no compute instance for as long as two looks are apart.
 *
 * <p>Where there is no place for an instance of its own, a lease gets a compute instance in one of
 * ours that has slices left ({@link MigSharing}). What is inside an instance that we made is ours;
 * the last lease's end destroys it.
 */
final class MigEnforcement implements Enforcement {
  private static final Logger log = LoggerFactory.getLogger(MigEnforcement.class);
  private static final String DIRECTORY = "mig";
  private static final long LOOK_MS = 500;

  private final Path runDirectory;
  private final Path directory;
  private final Enforcement beneath;
  private final Supplier<MigDriver> open;
  private final MigMaking making;
  private final ScheduledExecutorService watch;
  private final Map<String, MigLease> leases = new HashMap<>();

  /** How the GPUs were cut when that was looked at last. */
  private volatile Map<GpuId, MigState> seen = Map.of();

  /** What there were records of then. */
  private volatile List<MigRecord> known = List.of();

  /** Whose records were unclear at the look before. */
  private Set<String> unclearBefore = Set.of();

  private @Nullable MigDriver driver;

  private static final long LONGEST_END_MS = 1_000;

  MigEnforcement(Path runDirectory, Enforcement beneath, Supplier<MigDriver> open) {
    this.runDirectory = runDirectory;
    this.directory = directory(runDirectory);
    this.beneath = beneath;
    this.open = open;
    this.making = new MigMaking(directory, this::driver);
    this.watch =
        Executors.newSingleThreadScheduledExecutor(
            work -> {
              Thread thread = new Thread(work, "vgpu-mig");
              thread.setDaemon(true);
              return thread;
            });
    look();
    var ignored = watch.scheduleWithFixedDelay(this::look, LOOK_MS, LOOK_MS, TimeUnit.MILLISECONDS);
  }

  static Path directory(Path runDirectory) {
    return runDirectory.resolve(DIRECTORY);
  }

  synchronized MigDriver driver() {
    if (driver == null) {
      driver = open.get();
    }
    return driver;
  }

  // ---- looking

  /** Never throws: what goes wrong now may not the next time. */
  synchronized void look() {
    try {
      sweep();
      Map<GpuId, MigState> states = new HashMap<>();
      driver().gpus().forEach(state -> states.put(state.gpu(), state));
      known = List.copyOf(MigRecord.all(directory).values());
      seen = Map.copyOf(states);
      List.copyOf(leases.values()).forEach(lease -> check(lease, states));
    } catch (VgpuException | IOException e) {
      log.debug("MIG cannot be looked at now", e);
      forgetDriver();
    }
  }

  private void forgetDriver() {
    MigDriver failed = driver;
    driver = null;
    if (failed != null) {
      failed.close();
    }
  }

  private void check(MigLease lease, Map<GpuId, MigState> states) {
    MigState state = states.get(lease.record().gpu());
    if (state != null && !lease.isLost() && !isThere(lease.record(), state)) {
      making.removeRecord(lease.record().lease()); // one like it that is made now is not ours
      lease.lost(
          "somebody else has destroyed its MIG instance: gpu="
              + lease.record().gpu()
              + lease.record().device().map(id -> " instance=" + id).orElse(""));
    }
  }

  static boolean isThere(MigRecord record, MigState state) {
    return record.find(state).filter(in -> record.device().filter(in::has).isPresent()).isPresent();
  }

  // ---- what is left over

  /** Destroys what was made for leases that are gone. */
  private void sweep() throws IOException {
    Set<String> unclear = new HashSet<>();
    for (MigRecord record : MigRecord.all(directory).values()) {
      Path lease = runDirectory.resolve("leases").resolve(record.lease());
      if (leases.containsKey(record.lease()) || Files.exists(lease)) {
        continue;
      }
      if (!record.isUnclear() || unclearBefore.contains(record.lease())) {
        making.tryDestroy(record);
      } else if (isThereStill(record)) {
        unclear.add(record.lease());
      }
    }
    unclearBefore = unclear;
  }

  /** Whether what is unclear was seen; if there is nothing, its record goes. */
  private boolean isThereStill(MigRecord record) {
    try {
      boolean found = record.find(driver().gpu(record.gpu())).isPresent();
      if (!found) {
        making.removeRecord(record.lease());
      }
      return found;
    } catch (GpuDriverException e) {
      return false; // a GPU that does not answer keeps nobody else waiting
    }
  }

  synchronized void ended(MigLease lease) {
    if (leases.remove(lease.record().lease(), lease) && !lease.isLost()) {
      boolean now = making.tryDestroy(lease.record());
      log.debug("lease={} destroyed={}", lease.record().lease(), now);
      see(lease.record().gpu());
    }
  }

  /** Looks at one GPU again. */
  private void see(GpuId gpu) {
    try {
      Map<GpuId, MigState> states = new HashMap<>(seen);
      states.put(gpu, driver().gpu(gpu));
      known = List.copyOf(MigRecord.all(directory).values());
      seen = Map.copyOf(states);
    } catch (GpuDriverException | IOException e) {
      log.debug("MIG cannot be looked at now", e);
    }
  }

  // ---- leases

  /** Where the instance of a lease is, as it was seen last. Does not block. */
  Optional<String> place(MigRecord record) {
    return Optional.ofNullable(seen.get(record.gpu()))
        .flatMap(state -> record.device().flatMap(state::place));
  }

  @Override
  public Optional<String> lack(PhysicalGpu gpu, VirtualGpuRequest request) {
    MigState state = seen.get(gpu.id());
    if (state == null || state.geometry().isEmpty()) {
      return Optional.of("it cannot be cut into MIG instances now");
    }
    return MigMaking.place(state, state.geometry().get(), request).isPresent()
            || !MigSharing.hosts(state, request, known).isEmpty()
        ? Optional.empty()
        : Optional.of("there is no legal place for a MIG instance that has so much");
  }

  @Override
  public synchronized List<String> makeRoom(
      PhysicalGpu gpu, VirtualGpuRequest request, Predicate<String> mayMove) {
    try {
      List<String> moved =
          new MigMoves(making, this::driver, directory, gpu.id())
              .makeRoom(request, List.copyOf(leases.values()), mayMove);
      see(gpu.id());
      return moved;
    } catch (IOException e) {
      throw new VgpuException("cannot write down a MIG instance: " + e.getMessage(), e);
    }
  }

  @Override
  public synchronized EnforcedLease prepare(
      String id,
      Path leaseDirectory,
      PhysicalGpu gpu,
      VirtualGpuRequest request,
      EnforcedLease.Listener listener) {
    try {
      MigRecord before = MigRecord.all(directory).get(id);
      MigRecord record =
          before == null ? making.make(id, gpu.id(), request) : takeOver(before, request);
      MigState state = driver().gpu(gpu.id());
      MigGeometry geometry = state.geometry().orElseThrow();
      MigProfile profile = geometry.profile(record.profileId()).orElseThrow();
      EnforcedLease inner =
          beneathIn(id, leaseDirectory, gpu, request, listener, record, profile, before == null);
      MigLease lease =
          new MigLease(this, record, request, percent(record, state, geometry), inner, listener);
      leases.put(id, lease);
      see(gpu.id());
      return lease;
    } catch (IOException e) {
      throw new VgpuException("cannot write down a MIG instance: " + e.getMessage(), e);
    }
  }

  /** What part of the GPU's compute slices it has. */
  private static int percent(MigRecord record, MigState state, MigGeometry geometry) {
    return state.instances().stream()
        .flatMap(each -> each.parts().stream())
        .filter(part -> record.device().filter(part.device()::equals).isPresent())
        .mapToInt(part -> 100 * part.computeSlices() / geometry.computeSlices())
        .findFirst()
        .orElse(0);
  }

  /** Changes the quota of a lease where its instance has room beside the others in it. */
  synchronized boolean tryResize(MigLease lease, long bytes, BooleanSupplier beneathToo) {
    try {
      MigRecord record = lease.record();
      MigGeometry geometry = driver().gpu(record.gpu()).geometry().orElseThrow();
      long most = geometry.profile(record.profileId()).orElseThrow().memory().bytes();
      for (MigRecord other : MigSharing.others(record, MigRecord.all(directory).values())) {
        most -= other.terms().bytes();
      }
      if (bytes > most || !beneathToo.getAsBoolean()) {
        return false;
      }
      record.holding(bytes).write(directory);
      lease.record(record.holding(bytes));
      return true;
    } catch (IOException e) {
      throw new VgpuException("cannot write down a MIG instance: " + e.getMessage(), e);
    }
  }

  private EnforcedLease beneathIn(
      String id,
      Path leaseDirectory,
      PhysicalGpu gpu,
      VirtualGpuRequest request,
      EnforcedLease.Listener listener,
      MigRecord record,
      MigProfile profile,
      boolean isNew) {
    GpuId device = record.device().orElseThrow();
    NvmlGpu part =
        new NvmlGpu(device, gpu.model(), profile.memory(), profile.memory(), gpu.provider());
    boolean done = false;
    try {
      EnforcedLease inner = beneath.prepare(id, leaseDirectory, part, request, listener);
      done = true;
      return inner;
    } finally {
      if (!done && isNew) {
        boolean gone = making.tryDestroy(record);
        log.debug("nothing was prepared in a MIG instance: lease={} destroyed={}", id, gone);
      }
    }
  }

  /** What an earlier holder of the seat made, or was about to. */
  private MigRecord takeOver(MigRecord record, VirtualGpuRequest request) throws IOException {
    MigState state = driver().gpu(record.gpu());
    if (record.state() == MigRecord.State.MADE) {
      if (!isThere(record, state)) {
        throw new VgpuException(
            "somebody else has destroyed the MIG instance of a virtual GPU: id="
                + record.lease()
                + " gpu="
                + record.gpu());
      }
      return record;
    }
    // Half made, or half destroyed: the sweep decides about that one, under another name.
    record.named(record.lease() + ".left").write(directory);
    making.removeRecord(record.lease());
    sweep();
    return making.make(record.lease(), record.gpu(), request);
  }

  @Override
  public void close() {
    watch.shutdownNow();
    synchronized (this) {
      forgetDriver();
    }
    try {
      boolean ignored = watch.awaitTermination(LONGEST_END_MS, TimeUnit.MILLISECONDS);
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
    }
  }
}
