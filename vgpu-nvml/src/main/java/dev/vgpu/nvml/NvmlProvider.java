package dev.vgpu.nvml;

import static java.util.Objects.requireNonNull;

import dev.vgpu.GpuDriverException;
import dev.vgpu.GpuPool;
import dev.vgpu.VgpuException;
import dev.vgpu.backend.BackendStatus;
import dev.vgpu.nvml.binding.Nvml;
import dev.vgpu.request.GpuId;
import dev.vgpu.request.MemorySize;
import dev.vgpu.spi.GpuDriver;
import dev.vgpu.spi.GpuHealthListener;
import dev.vgpu.spi.GpuProvider;
import dev.vgpu.watch.GpuHealth;
import dev.vgpu.watch.GpuReading;
import dev.vgpu.watch.PhysicalGpu;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Collections;
import java.util.Iterator;
import java.util.LinkedHashMap;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.ServiceLoader;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import org.jspecify.annotations.Nullable;

/**
 * Finds GPUs through NVML: the library that {@code VGPU_NVML} names, else the machine's own if its
 * kernel driver is loaded, else that of a driver from a jar. If none of these exists, nothing
 * native is loaded. Safe for use by several threads.
 */
public final class NvmlProvider implements GpuProvider {
  private static final String NAME = "nvml";

  /** The variable with the place of a MIG instance, see {@code vgpu_env.def}. */
  public static final String MIG_VARIABLE = "VGPU_MIG";

  private final NvmlLibraries libraries;
  private final Object readingLock = new Object();
  private final Runnable end = this::endReadings;

  /** Kept open from the first reading on, because a real driver takes long to open. */
  private @Nullable NvmlSession readings;

  private @Nullable NvmlReader reader;

  /** The GPUs that were found, by UUID. A lost GPU stays. */
  private final Set<GpuId> known = Collections.synchronizedSet(new LinkedHashSet<>());

  /** Unhealthy GPUs, as the watch reported them. */
  private final Map<GpuId, NvmlReading> told = new ConcurrentHashMap<>();

  /** Called by {@code ServiceLoader}. */
  public NvmlProvider() {
    this(System.getenv(), NvmlLibraries.USUAL_PLACES, installedDrivers());
  }

  /**
   * {@return the drivers beside this class; the thread's loader may see another vgpu} Several
   * threads may iterate at once. A {@code ServiceLoader} does not allow that: while one thread
   * creates a driver, the others see none.
   */
  public static Iterable<GpuDriver> installedDrivers() {
    ServiceLoader<GpuDriver> loader =
        ServiceLoader.load(GpuDriver.class, NvmlProvider.class.getClassLoader());
    return () -> {
      synchronized (loader) {
        List<GpuDriver> all = new ArrayList<>();
        loader.forEach(all::add);
        return all.iterator();
      }
    };
  }

  NvmlProvider(Map<String, String> environment, List<Path> places, Iterable<GpuDriver> drivers) {
    libraries = new NvmlLibraries(environment, places, drivers);
  }

  @Override
  public BackendStatus status() {
    String name = NAME;
    try {
      Optional<NvmlCandidate> candidate = libraries.candidate();
      if (candidate.isEmpty()) {
        return BackendStatus.ofUnavailable(NAME, libraries.nothingFound());
      }
      name = candidate.get().name();
      try (NvmlSession session = NvmlSession.open(candidate.get())) {
        int count = session.gpus(name).size();
        return count == 0
            ? BackendStatus.ofUnavailable(
                name, "the driver has no GPU: file=" + candidate.get().nvml())
            : BackendStatus.ofAvailable(name).withNotes(session.leftOut());
      }
    } catch (VgpuException e) {
      return BackendStatus.ofUnavailable(name, String.valueOf(e.getMessage()));
    }
  }

  @Override
  public List<PhysicalGpu> gpus() {
    Optional<NvmlCandidate> candidate = libraries.candidate();
    if (candidate.isEmpty()) {
      return List.of();
    }
    try (NvmlSession session = NvmlSession.open(candidate.get())) {
      return found(session, candidate.get());
    } catch (GpuDriverException e) {
      if (e.code().orElse(0) == Nvml.NVML_ERROR_DRIVER_NOT_LOADED) {
        // The library exists but the driver is not loaded: a machine without a GPU.
        return List.of();
      }
      throw e;
    }
  }

  @Override
  public String scope(GpuId gpu) {
    return libraries.candidate().map(NvmlCandidate::driver).map(GpuDriver::scope).orElse("");
  }

  @Override
  public Map<String, String> environment(GpuId gpu) {
    return environment(List.of(gpu));
  }

  @Override
  public Map<String, String> environment(List<GpuId> gpus) {
    Map<String, String> variables = new LinkedHashMap<>();
    Optional<NvmlCandidate> candidate = libraries.candidate();
    if (candidate.isPresent()) {
      GpuDriver driver = candidate.get().driver();
      Path cuda = libraries.cudaLibrary(candidate.get());
      if (driver != null) {
        variables.putAll(driver.environment());
      }
      variables.put(NvmlLibraries.NVML_VARIABLE, candidate.get().nvml().toString());
      if (cuda != null) {
        variables.put(NvmlLibraries.DRIVER_VARIABLE, cuda.toString());
      }
      List<String> places = new ArrayList<>();
      for (GpuId gpu : gpus) {
        place(gpu).ifPresent(places::add);
      }
      if (!places.isEmpty()) {
        variables.put(MIG_VARIABLE, String.join(",", places));
      }
    }
    variables.put("CUDA_VISIBLE_DEVICES", String.join(",", values(gpus)));
    return Map.copyOf(variables);
  }

  private static List<String> values(List<GpuId> gpus) {
    List<String> values = new ArrayList<>();
    for (GpuId gpu : gpus) {
      values.add(gpu.value());
    }
    return values;
  }

  /** {@return the place of a MIG instance; empty for a whole GPU, or if unknown} */
  private Optional<String> place(GpuId gpu) {
    if (!NvmlSession.isInstance(gpu)) {
      return Optional.empty();
    }
    synchronized (readingLock) {
      try {
        return openReadings() ? requireNonNull(readings).place(gpu) : Optional.empty();
      } catch (VgpuException e) {
        return Optional.empty();
      }
    }
  }

  private List<PhysicalGpu> found(NvmlSession session, NvmlCandidate candidate) {
    List<PhysicalGpu> gpus = session.gpus(candidate.name());
    Set<GpuId> ids = new LinkedHashSet<>();
    for (PhysicalGpu gpu : gpus) {
      ids.add(gpu.id());
    }
    synchronized (known) {
      // A lost GPU comes back; a destroyed instance does not.
      Iterator<GpuId> each = known.iterator();
      while (each.hasNext()) {
        GpuId gpu = each.next();
        if (NvmlSession.isInstance(gpu) && !ids.contains(gpu)) {
          each.remove();
        }
      }
      known.addAll(ids);
    }
    return gpus;
  }

  /** A process that took over the seat has not listed GPUs yet: its predecessor did. */
  private void findUnlessKnown(NvmlSession session, NvmlCandidate candidate) {
    if (known.isEmpty()) {
      List<PhysicalGpu> ignored = found(session, candidate);
    }
  }

  private List<GpuId> known() {
    synchronized (known) {
      return List.copyOf(known);
    }
  }

  @Override
  public Optional<MemorySize> freeMemory(GpuId gpu) {
    synchronized (readingLock) {
      if (!openReadings()) {
        return Optional.empty();
      }
      boolean read = false;
      try {
        Optional<MemorySize> free = Optional.of(requireNonNull(readings).freeMemory(gpu));
        read = true;
        return free;
      } finally {
        if (!read) {
          closeReadings(); // the driver may have been reloaded: open NVML again next time
        }
      }
    }
  }

  /** {@return why there is no NVML} */
  public Optional<String> missing() {
    try {
      return libraries.candidate().isPresent()
          ? Optional.empty()
          : Optional.of(libraries.nothingFound());
    } catch (VgpuException e) {
      return Optional.of(String.valueOf(e.getMessage()));
    }
  }

  /**
   * {@return a new NVML session, which the caller closes}
   *
   * @throws GpuDriverException if there is no NVML, or it does not answer
   */
  public NvmlSession session() {
    return NvmlSession.open(
        libraries
            .candidate()
            .orElseThrow(() -> new GpuDriverException(libraries.nothingFound(), null)));
  }

  /** Opens NVML for readings; false if there is no NVML. */
  private boolean openReadings() {
    if (readings == null) {
      Optional<NvmlCandidate> candidate = libraries.candidate();
      if (candidate.isEmpty()) {
        return false;
      }
      NvmlSession session = NvmlSession.open(candidate.get());
      OpenNvml.add(end);
      readings = session;
      boolean listed = false;
      try {
        reader = new NvmlReader(session);
        findUnlessKnown(session, candidate.get());
        listed = true;
      } finally {
        if (!listed) {
          closeReadings(); // the next reading lists again
        }
      }
    }
    return true;
  }

  private void closeReadings() {
    if (readings != null) {
      readings.close();
      OpenNvml.remove(end);
      readings = null;
      reader = null;
    }
  }

  @Override
  public List<GpuReading> readings() {
    List<GpuReading> all = readAll();
    if (all.stream().anyMatch(reading -> reading.health() == GpuHealth.LOST)) {
      OpenNvml.endAll();
    }
    return all;
  }

  private List<GpuReading> readAll() {
    synchronized (readingLock) {
      try {
        if (!openReadings()) {
          return List.of();
        }
        List<GpuReading> all = new ArrayList<>();
        for (GpuId gpu : known()) {
          all.add(withTold(requireNonNull(reader).read(gpu)));
        }
        return all;
      } catch (VgpuException e) {
        String reason = String.valueOf(e.getMessage());
        return List.copyOf(known().stream().map(gpu -> NvmlReading.lost(gpu, reason)).toList());
      }
    }
  }

  private void endReadings() {
    synchronized (readingLock) {
      closeReadings();
    }
  }

  /** A fault that was an event cannot be read back from the driver. */
  private NvmlReading withTold(NvmlReading reading) {
    NvmlReading event = told.get(reading.gpu());
    return reading.health() == GpuHealth.HEALTHY
            && event != null
            && event.health() == GpuHealth.DEGRADED
        ? reading.with(event.health(), event.healthReason())
        : reading;
  }

  @Override
  public GpuPool.Listening watch(GpuHealthListener listener) {
    Optional<NvmlCandidate> candidate;
    try {
      candidate = libraries.candidate();
    } catch (VgpuException e) {
      return () -> {}; // the caller that lists the GPUs gets the reason
    }
    return candidate.isEmpty()
        ? () -> {}
        : NvmlWatch.start(new WatchSource(candidate.get()), listener);
  }

  /** What the watch needs from this provider. */
  private final class WatchSource implements NvmlWatch.Source {
    private final NvmlCandidate candidate;

    WatchSource(NvmlCandidate candidate) {
      this.candidate = candidate;
    }

    @Override
    public NvmlSession open() {
      NvmlSession session = NvmlSession.open(candidate);
      boolean opened = false;
      try {
        findUnlessKnown(session, candidate);
        opened = true;
        return session;
      } finally {
        if (!opened) {
          session.close();
        }
      }
    }

    @Override
    public List<GpuId> gpus() {
      return known();
    }

    @Override
    public void letGo() {
      OpenNvml.endAll();
    }

    @Override
    public void remember(GpuId gpu, GpuHealth health, String reason) {
      told.put(gpu, NvmlReading.lost(gpu, reason).with(health, reason));
    }
  }

  /** {@return the processes that have a context on a GPU, as the driver reports them} */
  List<GpuReading.GpuProcess> processes(GpuId gpu) {
    Optional<NvmlCandidate> candidate = libraries.candidate();
    if (candidate.isEmpty()) {
      return List.of();
    }
    try (NvmlSession session = NvmlSession.open(candidate.get())) {
      return session.processes(gpu);
    }
  }
}
