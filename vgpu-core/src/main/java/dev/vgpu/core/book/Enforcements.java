package dev.vgpu.core.book;

import dev.vgpu.VgpuException;
import dev.vgpu.backend.BackendStatus;
import dev.vgpu.core.ThreadLimit;
import dev.vgpu.core.disk.SeatLostException;
import dev.vgpu.request.Capabilities;
import dev.vgpu.request.GpuId;
import dev.vgpu.request.VirtualGpuRequest;
import dev.vgpu.spi.EnforcedLease;
import dev.vgpu.spi.Enforcement;
import dev.vgpu.spi.EnforcementBackend;
import dev.vgpu.spi.UnreadFiles;
import dev.vgpu.watch.PhysicalGpu;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Collections;
import java.util.Comparator;
import java.util.HashSet;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.concurrent.locks.ReentrantLock;
import java.util.function.Predicate;
import java.util.function.Supplier;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * The backends that put processes under virtual GPUs. A backend is loaded only when it is needed,
 * and opened once, by the process that holds the seat. Safe for use by several threads.
 */
public final class Enforcements implements AutoCloseable {
  private static final Logger log = LoggerFactory.getLogger(Enforcements.class);

  private final @Nullable Path runDirectory;
  private final String unusableBecause;
  private final Supplier<List<EnforcementBackend>> find;
  private final ReentrantLock lock = new ReentrantLock();

  /** Held while a backend is opened, which may take long; taken before the other lock. */
  private final ReentrantLock opening = new ReentrantLock();

  /** In the order of opening. */
  private final Map<String, Enforcement> opened = new LinkedHashMap<>();

  /** The same, for code that must not wait. */
  private volatile List<Enforcement> atWork = List.of();

  private @Nullable List<EnforcementBackend> backends;
  private boolean closed;

  private Enforcements(
      @Nullable Path runDirectory,
      String unusableBecause,
      Supplier<List<EnforcementBackend>> find) {
    this.runDirectory = runDirectory;
    this.unusableBecause = unusableBecause;
    this.find = find;
  }

  /** {@return backends that keep their files in a run directory} */
  public static Enforcements in(Path runDirectory, Supplier<List<EnforcementBackend>> find) {
    return new Enforcements(runDirectory, "", find);
  }

  /** The same backends, none of them open. */
  public Enforcements anew() {
    return new Enforcements(runDirectory, unusableBecause, find);
  }

  /** The same backends for another run directory, none of them open. */
  public Enforcements anewIn(Path otherDirectory) {
    return new Enforcements(otherDirectory, "", find);
  }

  /** No backends, for a JVM that works alone. */
  public static Enforcements none(String because) {
    return new Enforcements(null, because, List::of);
  }

  /** All installed backends, cheapest first. */
  List<EnforcementBackend> backends() {
    lock.lock();
    try {
      if (backends == null) {
        backends =
            find.get().stream().sorted(Comparator.comparingInt(EnforcementBackend::cost)).toList();
      }
      return backends;
    } finally {
      lock.unlock();
    }
  }

  /** {@return whether each installed backend can be used} */
  public List<BackendStatus> statuses() {
    return backends().stream().map(EnforcementBackend::status).toList();
  }

  Optional<EnforcementBackend> named(String name) {
    return backends().stream().filter(backend -> backend.name().equals(name)).findFirst();
  }

  /** The first backend that works on a GPU and changes nothing outside the run directory. */
  public Optional<String> thatKeepsToRunDirectory(PhysicalGpu gpu) {
    return backends().stream()
        .filter(EnforcementBackend::keepsToRunDirectory)
        .filter(backend -> backend.serves(gpu) && backend.status().isAvailable())
        .map(EnforcementBackend::name)
        .findFirst();
  }

  /** The names of a backend and of the one beneath it, which comes first. */
  public List<String> stack(String name) {
    List<String> names = new ArrayList<>();
    named(name).flatMap(this::beneath).ifPresent(beneath -> names.add(beneath.name()));
    names.add(name);
    return names;
  }

  /** The backend beneath another; empty if there is none, which is fine if it needs none. */
  Optional<EnforcementBackend> beneath(EnforcementBackend backend) {
    Optional<Capabilities> needs = backend.needs();
    if (needs.isEmpty()) {
      return Optional.empty();
    }
    return backends().stream()
        .filter(other -> other.needs().isEmpty())
        .filter(other -> other.capabilities().missingFor(needs.get()).isEmpty())
        .filter(other -> other.status().isAvailable())
        .findFirst();
  }

  /** Throws if no program can be put under a virtual GPU at all. */
  void checkUsable() {
    if (runDirectory == null) {
      throw new VgpuException(
          "no program can be put under a virtual GPU: this pool serves its JVM alone: "
              + unusableBecause);
    }
  }

  /**
   * Prepares a lease for processes, or takes it over from an earlier holder of the seat. May take
   * seconds: call it without the table's lock.
   */
  EnforcedLease prepare(
      EnforcementBackend backend,
      Booking booking,
      Path directory,
      EnforcedLease.Listener listener) {
    EnforcedLease lease;
    try {
      lease =
          open(backend).prepare(booking.id, directory, booking.gpu(), booking.request(), listener);
    } catch (OutOfMemoryError e) {
      throw ThreadLimit.refusal("the virtual GPU cannot be prepared: id=" + booking.id, e);
    } catch (VgpuException e) {
      checkOpen(); // a closed backend prepares nothing
      throw e;
    }
    lease.gpus(booking.gpus());
    return booking.spatial ? new SpatialLease(lease, () -> booking.suspended) : lease;
  }

  /** Why a backend cannot serve a request now. A backend that is not open may not know. */
  Optional<String> lack(EnforcementBackend backend, PhysicalGpu gpu, VirtualGpuRequest request) {
    Enforcement enforcement;
    lock.lock();
    try {
      enforcement = opened.get(backend.name());
      if (enforcement == null && !backend.preparesWhenGranted()) {
        return Optional.empty();
      }
    } finally {
      lock.unlock();
    }
    try {
      return (enforcement == null ? open(backend) : enforcement).lack(gpu, request);
    } catch (VgpuException e) {
      return Optional.of(String.valueOf(e.getMessage()));
    }
  }

  /**
   * Moves parts set aside for leases without processes, so that a request fits. Returns the moved
   * leases. May take seconds: call it without the table's lock.
   */
  List<String> makeRoom(PhysicalGpu gpu, VirtualGpuRequest request, Predicate<String> mayMove) {
    for (EnforcementBackend backend : backends()) {
      if (backend.preparesWhenGranted()
          && backend.serves(gpu)
          && backend.status().isAvailable()
          && backend.capabilities().missingFor(request.requires()).isEmpty()
          && backend.obstacle(gpu).isEmpty()
          && backend.unable(gpu, request).isEmpty()) {
        List<String> moved = makeRoom(open(backend), gpu, request, mayMove);
        if (!moved.isEmpty()) {
          return moved;
        }
      }
    }
    return List.of();
  }

  private List<String> makeRoom(
      Enforcement in, PhysicalGpu gpu, VirtualGpuRequest request, Predicate<String> mayMove) {
    try {
      return in.makeRoom(gpu, request, mayMove);
    } catch (VgpuException e) {
      checkOpen(); // a closed backend moves nothing
      throw e;
    }
  }

  private static boolean isCut(List<PhysicalGpu> gpus) {
    return gpus.stream().anyMatch(gpu -> gpu.unusableAsWhole().isPresent());
  }

  /** The GPUs, without those that are parts set aside for leases by a backend. */
  public List<PhysicalGpu> withoutParts(List<PhysicalGpu> gpus) {
    Path directory = runDirectory;
    if (directory == null || !isCut(gpus)) {
      return gpus;
    }
    Set<GpuId> parts = new HashSet<>();
    backends().forEach(backend -> parts.addAll(backend.partsSetAside(directory)));
    return gpus.stream().filter(gpu -> !parts.contains(gpu.id())).toList();
  }

  /**
   * Opens the backends that must give back what an earlier holder of the seat set aside for leases
   * that are gone.
   */
  public void begin(List<PhysicalGpu> gpus) {
    Path directory = runDirectory;
    if (directory == null) {
      return;
    }
    boolean isCut = isCut(gpus);
    for (EnforcementBackend backend : backends()) {
      try {
        if (((isCut && backend.preparesWhenGranted()) || backend.hasLeftovers(directory))
            && backend.status().isAvailable()
            && gpus.stream().anyMatch(backend::serves)) {
          Enforcement ignored = open(backend);
        }
      } catch (RuntimeException | OutOfMemoryError e) {
        log.warn("a backend cannot begin: backend={}", backend.name(), e);
      }
    }
  }

  /**
   * Makes the kernel refuse files that others pass to a socket, if a backend knows how.
   *
   * @return what finds them, if a backend cannot make the kernel refuse them
   */
  public Optional<UnreadFiles> refuseFiles(Path socket) {
    return backends().stream().flatMap(each -> each.refuseFiles(socket).stream()).findFirst();
  }

  /** The open backends. Never blocks. */
  public List<Enforcement> atWork() {
    return atWork;
  }

  private Enforcement open(EnforcementBackend backend) {
    Optional<Enforcement> before = opened(backend);
    if (before.isPresent()) {
      return before.get();
    }
    opening.lock();
    try {
      Path directory = runDirectory;
      Optional<Enforcement> meanwhile = opened(backend);
      if (meanwhile.isPresent()) {
        return meanwhile.get();
      } else if (directory == null) {
        throw new IllegalStateException("the pool is closed");
      }
      Enforcement enforcement =
          backend.needs().isEmpty()
              ? backend.open(directory)
              : backend.open(directory, open(need(backend)));
      if (!add(backend, enforcement)) {
        close(enforcement);
        throw SeatLostException.givenUp();
      }
      return enforcement;
    } finally {
      opening.unlock();
    }
  }

  /** Adds a backend that was just opened; returns false if all were closed meanwhile. */
  private boolean add(EnforcementBackend backend, Enforcement enforcement) {
    lock.lock();
    try {
      if (!closed) {
        opened.put(backend.name(), enforcement);
        atWork = List.copyOf(opened.values());
      }
      return !closed;
    } finally {
      lock.unlock();
    }
  }

  private void checkOpen() {
    lock.lock();
    try {
      if (closed) {
        throw SeatLostException.givenUp();
      }
    } finally {
      lock.unlock();
    }
  }

  private Optional<Enforcement> opened(EnforcementBackend backend) {
    lock.lock();
    try {
      checkOpen();
      return Optional.ofNullable(opened.get(backend.name()));
    } finally {
      lock.unlock();
    }
  }

  private EnforcementBackend need(EnforcementBackend backend) {
    return beneath(backend)
        .orElseThrow(
            () ->
                new VgpuException(
                    "the backend needs another one that is not installed: backend="
                        + backend.name()
                        + " needs "
                        + backend.needs()));
  }

  /**
   * Stops enforcing. Leases stay as they are for the next holder of the seat. Then waits for a
   * backend that is being opened, which is closed as soon as it is open.
   */
  @Override
  public void close() {
    List<Enforcement> closing;
    lock.lock();
    try {
      closed = true;
      closing = new ArrayList<>(opened.values());
      opened.clear();
      atWork = List.of();
    } finally {
      lock.unlock();
    }
    Collections.reverse(closing); // a backend before the one beneath it
    closing.forEach(Enforcements::close);
    opening.lock();
    try {
      log.debug("closed: backends={}", closing.size());
    } finally {
      opening.unlock();
    }
  }

  private static void close(Enforcement enforcement) {
    try {
      enforcement.close();
    } catch (RuntimeException e) {
      log.warn("a backend could not be stopped", e);
    }
  }
}
