package dev.vgpu.nvml.mig;

import dev.vgpu.GpuDriverException;
import dev.vgpu.VgpuException;
import dev.vgpu.nvml.NvmlGpu;
import dev.vgpu.nvml.mig.plan.MigGeometry;
import dev.vgpu.nvml.mig.plan.MigProfile;
import dev.vgpu.request.GpuId;
import dev.vgpu.request.VirtualGpuRequest;
import dev.vgpu.spi.EnforcedLease;
import dev.vgpu.spi.Enforcement;
import dev.vgpu.watch.PhysicalGpu;
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
import java.util.concurrent.locks.LockSupport;
import java.util.concurrent.locks.ReentrantLock;
import java.util.function.BooleanSupplier;
import java.util.function.Predicate;
import java.util.function.Supplier;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * MIG in the process that holds the seat. Safe for use by several threads.
 *
 * <p>Each instance has a record in the run directory, written before the instance is created and
 * removed after it is destroyed. A record whose lease is gone tells what to destroy. An instance is
 * foreign if it has no record, or if a record lists it among those that existed before. One case is
 * unclear: this process's predecessor died just before it created or destroyed an instance, and now
 * there is one at that place. It is left alone while it has a compute instance; otherwise it must
 * be seen at two looks. So a foreign instance is taken for ours only if it has the same profile and
 * place, was created after that death, and has no compute instance from one look to the next.
 *
 * <p>If there is no place for a new instance, a lease gets a compute instance in one of ours that
 * has free slices ({@link MigSharing}). Everything inside an instance that we created is ours; the
 * end of its last lease destroys it.
 */
final class MigEnforcement implements Enforcement {
  private static final Logger log = LoggerFactory.getLogger(MigEnforcement.class);
  private static final String DIRECTORY = "mig";
  private static final long LOOK_MS = 500;
  private static final long AGAIN_NS = 100_000_000;

  private final Path runDirectory;
  private final Path directory;
  private final Enforcement beneath;
  private final Supplier<MigDriver> open;
  private final MigMaking making;
  private final ScheduledExecutorService watch;
  private final Map<String, MigLease> leases = new HashMap<>();

  /** Held during calls of the driver, which may hang. */
  private final ReentrantLock lock = new ReentrantLock();

  /** The state of the GPUs at the last look. */
  private volatile Map<GpuId, MigState> seen = Map.of();

  /** The records at that look. */
  private volatile List<MigRecord> known = List.of();

  /** The leases whose records were unclear at the look before. */
  private Set<String> unclearBefore = Set.of();

  /** The leases whose instances were not found at the look before. */
  private Set<String> absentBefore = Set.of();

  private @Nullable MigDriver driver;

  /** If so, another process decides: nothing more is begun. */
  private volatile boolean closed;

  private static final long LONGEST_END_MS = 1_000;

  /** How long a resize waits for other work on instances. */
  private static final long LONGEST_RESIZE_MS = 1_000;

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

  MigDriver driver() {
    lock.lock();
    try {
      if (driver == null) {
        driver = open.get();
      }
      return driver;
    } finally {
      lock.unlock();
    }
  }

  // ---- looks

  /** Never throws: an error, even a lack of memory, may be gone at the next look. */
  void look() {
    try {
      lookNow();
    } catch (RuntimeException | Error e) {
      log.error("MIG cannot be looked at now, and this is tried again", e);
    }
  }

  private void lookNow() {
    lock.lock();
    try {
      if (closed) {
        return;
      }
      sweep();
      Map<GpuId, MigState> states = new HashMap<>();
      driver().gpus().forEach(state -> states.put(state.gpu(), state));
      known = List.copyOf(MigRecord.all(directory).values());
      seen = Map.copyOf(states);
      Set<String> absent = new HashSet<>();
      List.copyOf(leases.values()).forEach(lease -> check(lease, states, absent));
      absentBefore = absent;
    } catch (RuntimeException | IOException e) {
      log.debug("MIG cannot be looked at now", e);
      forgetDriver();
    } finally {
      lock.unlock();
    }
  }

  private void forgetDriver() {
    MigDriver failed = driver;
    driver = null;
    if (failed != null) {
      failed.close();
    }
  }

  /** An instance is gone if two looks in a row do not find it: NVML may say too little once. */
  private void check(MigLease lease, Map<GpuId, MigState> states, Set<String> absent) {
    MigState state = states.get(lease.record().gpu());
    if (state == null
        || lease.isLost()
        || hides(state, lease.record().profileId())
        || isThere(lease.record(), state)) {
      return;
    }
    if (!absentBefore.contains(lease.record().lease())) {
      absent.add(lease.record().lease());
    } else {
      making.removeRecord(lease.record().lease()); // a similar one made now is not ours
      lease.lost(
          "its MIG instance was destroyed from outside: gpu="
              + lease.record().gpu()
              + lease.record().device().map(id -> " instance=" + id).orElse(""));
    }
  }

  /** {@return whether no instance of a profile could be seen, as NVML did not tell of it} */
  private static boolean hides(MigState state, int profileId) {
    return state.on() && state.geometry().flatMap(all -> all.profile(profileId)).isEmpty();
  }

  static boolean isThere(MigRecord record, MigState state) {
    return record.find(state).filter(in -> record.device().filter(in::has).isPresent()).isPresent();
  }

  // ---- leftovers

  /** Destroys what was created for leases that are gone. */
  private void sweep() throws IOException {
    Set<String> unclear = new HashSet<>();
    for (MigRecord record : MigRecord.all(directory).values()) {
      Path lease = runDirectory.resolve("leases").resolve(record.lease());
      if (closed || leases.containsKey(record.lease()) || Files.exists(lease)) {
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

  /** {@return whether the unclear instance exists} If it does not, its record is removed. */
  private boolean isThereStill(MigRecord record) {
    try {
      boolean found = record.find(driver().gpu(record.gpu())).isPresent();
      if (!found) {
        making.removeRecord(record.lease());
      }
      return found;
    } catch (GpuDriverException e) {
      return false; // a GPU that does not answer must not delay the others
    }
  }

  void ended(MigLease lease) {
    lock.lock();
    try {
      if (!closed && leases.remove(lease.record().lease(), lease) && !lease.isLost()) {
        boolean now = making.tryDestroy(lease.record());
        log.debug("lease={} destroyed={}", lease.record().lease(), now);
        see(lease.record().gpu());
      }
    } finally {
      lock.unlock();
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

  /** {@return the place of a lease's instance, as of the last look} Does not block. */
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
        : Optional.of(MigParts.lack(state, state.geometry().get(), request));
  }

  @Override
  public List<String> makeRoom(
      PhysicalGpu gpu, VirtualGpuRequest request, Predicate<String> mayMove) {
    lock.lock();
    try {
      checkOpen();
      List<String> moved =
          new MigMoves(making, this::driver, directory, gpu.id())
              .makeRoom(request, List.copyOf(leases.values()), mayMove);
      see(gpu.id());
      return moved;
    } catch (IOException e) {
      throw new VgpuException("cannot write the record of a MIG instance: " + e.getMessage(), e);
    } finally {
      lock.unlock();
    }
  }

  @Override
  public EnforcedLease prepare(
      String id,
      Path leaseDirectory,
      PhysicalGpu gpu,
      VirtualGpuRequest request,
      EnforcedLease.Listener listener) {
    lock.lock();
    try {
      checkOpen();
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
      throw new VgpuException("cannot write the record of a MIG instance: " + e.getMessage(), e);
    } finally {
      lock.unlock();
    }
  }

  private void checkOpen() {
    if (closed) {
      throw new VgpuException("MIG is closed: this process has given the seat up");
    }
  }

  /** {@return the lease's part of the GPU's compute slices, in percent} */
  private static int percent(MigRecord record, MigState state, MigGeometry geometry) {
    return state.instances().stream()
        .flatMap(each -> each.parts().stream())
        .filter(part -> record.device().filter(part.device()::equals).isPresent())
        .mapToInt(part -> 100 * part.computeSlices() / geometry.computeSlices())
        .findFirst()
        .orElse(0);
  }

  /**
   * Changes a lease's quota if its instance has room beside the other leases in it. The caller
   * holds a lock that others need. So the driver is not asked, and another thread's work on
   * instances is not waited for if it takes long.
   */
  boolean tryResize(MigLease lease, long bytes, BooleanSupplier beneathToo) {
    if (!isFreeSoon()) {
      throw new VgpuException(
          "the MIG instances are being changed, or the driver hangs; try again: lease="
              + lease.record().lease());
    }
    try {
      checkOpen();
      MigRecord record = lease.record();
      MigState state = seen.get(record.gpu());
      if (state == null || state.geometry().isEmpty()) {
        throw new VgpuException("the GPU cannot be read now; try again: gpu=" + record.gpu());
      }
      MigGeometry geometry = state.geometry().get();
      long most = geometry.profile(record.profileId()).orElseThrow().memory().bytes();
      for (MigRecord other : MigSharing.others(record, MigRecord.all(directory).values())) {
        most -= other.terms().bytes();
      }
      if (bytes > most) {
        return false;
      }
      record.holding(bytes).write(directory); // before the quota: the disk may be full
      boolean resized = false;
      try {
        resized = beneathToo.getAsBoolean();
      } finally {
        if (resized) {
          lease.record(record.holding(bytes));
        } else {
          record.write(directory);
        }
      }
      return resized;
    } catch (IOException e) {
      throw new VgpuException("cannot write the record of a MIG instance: " + e.getMessage(), e);
    } finally {
      lock.unlock();
    }
  }

  private boolean isFreeSoon() {
    try {
      return lock.tryLock(LONGEST_RESIZE_MS, TimeUnit.MILLISECONDS);
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
      return false;
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
      if (!done && isNew && !closed) { // the next holder of the seat finds the record
        boolean gone = making.tryDestroy(record);
        log.debug("nothing was prepared in a MIG instance: lease={} destroyed={}", id, gone);
      }
    }
  }

  /** Looks again after a while: a lease is not given up for one look. */
  private boolean isThereLater(MigRecord record) {
    LockSupport.parkNanos(this, AGAIN_NS);
    return isThere(record, driver().gpu(record.gpu()));
  }

  /** Takes over what an earlier holder of the seat created, or was about to create. */
  private MigRecord takeOver(MigRecord record, VirtualGpuRequest request) throws IOException {
    MigState state = driver().gpu(record.gpu());
    if (record.state() == MigRecord.State.MADE) {
      if (!isThere(record, state) && !isThereLater(record)) {
        throw new VgpuException(
            "the MIG instance of a virtual GPU was destroyed from outside: id="
                + record.lease()
                + " gpu="
                + record.gpu());
      }
      return record;
    }
    // Half created or half destroyed: the sweep decides about it, under another name.
    record.named(record.lease() + ".left").write(directory);
    making.removeRecord(record.lease());
    sweep();
    return making.make(record.lease(), record.gpu(), request);
  }

  /** Does not wait for the driver; what is under way there ends before the driver is closed. */
  @Override
  public void close() {
    if (closed) {
      return;
    }
    closed = true;
    watch.execute(this::letDriverGo);
    watch.shutdown();
    try {
      boolean ignored = watch.awaitTermination(LONGEST_END_MS, TimeUnit.MILLISECONDS);
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
    }
  }

  private void letDriverGo() {
    lock.lock();
    try {
      forgetDriver();
    } finally {
      lock.unlock();
    }
  }
}
