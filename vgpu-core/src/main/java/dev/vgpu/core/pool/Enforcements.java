package dev.vgpu.core.pool;

import dev.vgpu.BackendStatus;
import dev.vgpu.Capabilities;
import dev.vgpu.ContainerSpec;
import dev.vgpu.PhysicalGpu;
import dev.vgpu.VgpuException;
import dev.vgpu.spi.EnforcedLease;
import dev.vgpu.spi.Enforcement;
import dev.vgpu.spi.EnforcementBackend;
import dev.vgpu.spi.ProcessAttachment;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.ServiceLoader;
import java.util.concurrent.locks.ReentrantLock;
import java.util.function.Supplier;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * The backends that put processes under virtual GPUs. Nothing of them is loaded before it is
 * needed; each is opened once, by the process that holds the seat. Safe for use by several threads.
 */
final class Enforcements implements AutoCloseable {
  private static final Logger log = LoggerFactory.getLogger(Enforcements.class);

  private final @Nullable Path runDirectory;
  private final String unusableBecause;
  private final Supplier<List<EnforcementBackend>> find;
  private final ReentrantLock lock = new ReentrantLock();
  private final Map<String, Enforcement> opened = new HashMap<>();
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

  static Enforcements in(Path runDirectory, Supplier<List<EnforcementBackend>> find) {
    return new Enforcements(runDirectory, "", find);
  }

  /** For a JVM that works alone. */
  static Enforcements none(String because) {
    return new Enforcements(null, because, List::of);
  }

  static List<EnforcementBackend> installed() {
    List<EnforcementBackend> found = new ArrayList<>();
    ServiceLoader.load(EnforcementBackend.class).forEach(found::add);
    if (found.isEmpty()) {
      ServiceLoader.load(EnforcementBackend.class, Enforcements.class.getClassLoader())
          .forEach(found::add);
    }
    return found;
  }

  private List<EnforcementBackend> backends() {
    lock.lock();
    try {
      if (backends == null) {
        backends = List.copyOf(find.get());
      }
      return backends;
    } finally {
      lock.unlock();
    }
  }

  List<BackendStatus> statuses() {
    return backends().stream().map(EnforcementBackend::status).toList();
  }

  /** What can be enforced on a GPU: by turns inside JVMs, and by the backends that serve it. */
  Capabilities capabilities(PhysicalGpu gpu) {
    Capabilities all = InProcessBackend.CAPABILITIES;
    for (EnforcementBackend backend : backends()) {
      if (backend.serves(gpu) && backend.status().isAvailable()) {
        all = union(all, backend.capabilities());
      }
    }
    return all;
  }

  private static Capabilities union(Capabilities one, Capabilities other) {
    return Capabilities.builder()
        .memory(max(one.memory(), other.memory()))
        .compute(max(one.compute(), other.compute()))
        .preemption(max(one.preemption(), other.preemption()))
        .faultIsolation(max(one.faultIsolation(), other.faultIsolation()))
        .worksFor(one.worksFor().toArray(new Capabilities.Scope[0]))
        .worksFor(other.worksFor().toArray(new Capabilities.Scope[0]))
        .build();
  }

  private static <E extends Enum<E>> E max(E one, E other) {
    return one.compareTo(other) >= 0 ? one : other;
  }

  /** Refuses where no program can be put under a virtual GPU at all. */
  void checkUsable() {
    if (runDirectory == null) {
      throw new VgpuException(
          "no program can be put under a virtual GPU: this pool serves its JVM alone: "
              + unusableBecause);
    }
  }

  /** Makes a lease ready for processes, or takes it over from an earlier holder of the seat. */
  EnforcedLease prepare(Booking booking, Path directory, EnforcedLease.Listener listener) {
    EnforcementBackend backend = backendFor(booking.gpu(), Optional.ofNullable(booking.backend));
    EnforcedLease lease =
        open(backend).prepare(booking.id, directory, booking.gpu(), booking.request(), listener);
    lease.gpus(booking.gpus());
    booking.backend = backend.name();
    return lease;
  }

  private EnforcementBackend backendFor(PhysicalGpu gpu, Optional<String> name) {
    List<String> reasons = new ArrayList<>();
    for (EnforcementBackend backend : backends()) {
      if (name.isPresent() && !name.get().equals(backend.name())) {
        continue;
      }
      if (!backend.serves(gpu)) {
        reasons.add(backend.name() + " does not serve it");
        continue;
      }
      BackendStatus status = backend.status();
      if (status.isAvailable()) {
        return backend;
      }
      reasons.add(status.toString());
    }
    throw new VgpuException(
        "no backend can put programs under a virtual GPU of this GPU: gpu="
            + gpu.id()
            + " provider="
            + gpu.provider()
            + " backends="
            + (reasons.isEmpty() ? "none installed (add dev.vgpu:vgpu-cuda)" : reasons));
  }

  private Enforcement open(EnforcementBackend backend) {
    Path directory = runDirectory;
    lock.lock();
    try {
      if (closed || directory == null) {
        throw new IllegalStateException("the pool is closed");
      }
      Enforcement enforcement = opened.get(backend.name());
      if (enforcement == null) {
        enforcement = backend.open(directory);
        opened.put(backend.name(), enforcement);
      }
      return enforcement;
    } finally {
      lock.unlock();
    }
  }

  /** Puts this process under a lease, by the backend that can. */
  static ProcessAttachment attachThisProcess(
      List<EnforcementBackend> of, Map<String, String> environment) {
    return available(of, "this JVM").attachThisProcess(environment);
  }

  /** What a container needs, by the backend that knows. */
  static ContainerSpec containerSpec(List<EnforcementBackend> of, Map<String, String> environment) {
    return available(of, "a container").containerSpec(environment);
  }

  private static EnforcementBackend available(List<EnforcementBackend> of, String what) {
    List<String> reasons = new ArrayList<>();
    for (EnforcementBackend backend : of) {
      BackendStatus status = backend.status();
      if (status.isAvailable()) {
        return backend;
      }
      reasons.add(status.toString());
    }
    throw new VgpuException(
        "no backend can put "
            + what
            + " under a virtual GPU: backends="
            + (reasons.isEmpty() ? "none installed (add dev.vgpu:vgpu-cuda)" : reasons));
  }

  /** Stops enforcing; leases stay as they are for the next holder of the seat. */
  @Override
  public void close() {
    List<Enforcement> closing;
    lock.lock();
    try {
      closed = true;
      closing = List.copyOf(opened.values());
      opened.clear();
    } finally {
      lock.unlock();
    }
    for (Enforcement enforcement : closing) {
      try {
        enforcement.close();
      } catch (RuntimeException e) {
        log.warn("a backend could not be stopped", e);
      }
    }
  }
}
