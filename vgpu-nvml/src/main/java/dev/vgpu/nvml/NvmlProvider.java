package dev.vgpu.nvml;

import static java.util.Objects.requireNonNull;

import dev.vgpu.BackendStatus;
import dev.vgpu.GpuDriverException;
import dev.vgpu.GpuHealth;
import dev.vgpu.GpuId;
import dev.vgpu.GpuPool;
import dev.vgpu.GpuReading;
import dev.vgpu.MemorySize;
import dev.vgpu.PhysicalGpu;
import dev.vgpu.VgpuException;
import dev.vgpu.files.TrustedFiles;
import dev.vgpu.nvml.binding.Nvml;
import dev.vgpu.spi.GpuDriver;
import dev.vgpu.spi.GpuHealthListener;
import dev.vgpu.spi.GpuProvider;
import java.nio.file.Files;
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
 * GPUs found through NVML: the library that {@code VGPU_NVML} names, else the machine's own, else
 * that of a driver that a jar brings along. Nothing native is loaded where there is none of these.
 * Safe for use by several threads.
 */
public final class NvmlProvider implements GpuProvider {
  private static final String NAME = "nvml";
  private static final String NVML_VARIABLE = "VGPU_NVML";
  private static final String DRIVER_VARIABLE = "VGPU_CUDA_DRIVER";

  /** Where a MIG instance is, see vgpu_env.def. */
  public static final String MIG_VARIABLE = "VGPU_MIG";

  private static final String NVML_FILE = "libnvidia-ml.so.1";
  private static final String CUDA_FILE = "libcuda.so.1";
  private static final List<Path> USUAL_PLACES =
      List.of(
          Path.of("/usr/lib/x86_64-linux-gnu"),
          Path.of("/usr/lib/aarch64-linux-gnu"),
          Path.of("/usr/lib64"),
          Path.of("/usr/lib"),
          Path.of("/usr/lib/x86_64-linux-gnu/nvidia/current"),
          Path.of("/usr/local/nvidia/lib64"),
          Path.of("/usr/local/nvidia/lib"),
          Path.of("/usr/lib/wsl/lib"),
          Path.of("/run/opengl-driver/lib"));

  private final Map<String, String> environment;
  private final List<Path> places;
  private final Iterable<GpuDriver> drivers;
  private final Object readingLock = new Object();
  private final Runnable end = this::endReadings;

  /** Kept open from the first reading on: to open it takes long with a real driver. */
  private @Nullable NvmlSession readings;

  private @Nullable NvmlReader reader;

  /** Those that were found, by their names; one that is lost stays. */
  private final Set<GpuId> known = Collections.synchronizedSet(new LinkedHashSet<>());

  /** What the watch, if there is one, knows of those that are not healthy. */
  private final Map<GpuId, NvmlReading> told = new ConcurrentHashMap<>();

  /** Makes the provider; {@code ServiceLoader} does. */
  public NvmlProvider() {
    this(System.getenv(), USUAL_PLACES, installedDrivers());
  }

  /** Those beside this class: the thread may be one that sees another copy of vgpu. */
  public static ServiceLoader<GpuDriver> installedDrivers() {
    return ServiceLoader.load(GpuDriver.class, NvmlProvider.class.getClassLoader());
  }

  NvmlProvider(Map<String, String> environment, List<Path> places, Iterable<GpuDriver> drivers) {
    this.environment = Map.copyOf(environment);
    this.places = searchPath(this.environment.getOrDefault("LD_LIBRARY_PATH", ""), places);
    this.drivers = drivers;
  }

  private static List<Path> searchPath(String named, List<Path> usual) {
    List<Path> all = new ArrayList<>();
    for (String directory : named.split(":", -1)) {
      if (directory.startsWith("/")) {
        all.add(Path.of(directory));
      }
    }
    all.addAll(usual);
    return List.copyOf(all);
  }

  @Override
  public BackendStatus status() {
    String name = NAME;
    try {
      Optional<NvmlCandidate> candidate = candidate();
      if (candidate.isEmpty()) {
        return BackendStatus.ofUnavailable(NAME, nothingFound());
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

  private String nothingFound() {
    return "no NVIDIA driver: "
        + NVML_VARIABLE
        + " is not set, and there is no "
        + NVML_FILE
        + " in "
        + places;
  }

  @Override
  public List<PhysicalGpu> gpus() {
    Optional<NvmlCandidate> candidate = candidate();
    if (candidate.isEmpty()) {
      return List.of();
    }
    try (NvmlSession session = NvmlSession.open(candidate.get())) {
      return found(session, candidate.get());
    } catch (GpuDriverException e) {
      if (e.code().orElse(0) == Nvml.NVML_ERROR_DRIVER_NOT_LOADED) {
        // The library is there, the driver is not: a machine without a GPU.
        return List.of();
      }
      throw e;
    }
  }

  @Override
  public Map<String, String> environment(GpuId gpu) {
    return environment(List.of(gpu));
  }

  @Override
  public Map<String, String> environment(List<GpuId> gpus) {
    Map<String, String> variables = new LinkedHashMap<>();
    Optional<NvmlCandidate> candidate = candidate();
    if (candidate.isPresent()) {
      GpuDriver driver = candidate.get().driver();
      Path cuda = cudaLibrary(candidate.get().nvml(), driver);
      if (driver != null) {
        variables.putAll(driver.environment());
      }
      variables.put(NVML_VARIABLE, candidate.get().nvml().toString());
      if (cuda != null) {
        variables.put(DRIVER_VARIABLE, cuda.toString());
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

  /** Where a MIG instance is; empty of a whole GPU, and where the driver does not tell. */
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
      // A GPU that is lost comes back; an instance that was destroyed does not.
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

  /** A process that took the seat over was told of the GPUs by the one before. */
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
          closeReadings(); // the driver may have been reloaded: begin anew the next time
        }
      }
    }
  }

  /** {@return why there is no NVML; looks at files only} */
  public Optional<String> missing() {
    try {
      return candidate().isPresent() ? Optional.empty() : Optional.of(nothingFound());
    } catch (VgpuException e) {
      return Optional.of(String.valueOf(e.getMessage()));
    }
  }

  /**
   * {@return NVML, for as long as the caller likes}
   *
   * @throws GpuDriverException if there is none, or it does not answer
   */
  public NvmlSession session() {
    return NvmlSession.open(
        candidate().orElseThrow(() -> new GpuDriverException(nothingFound(), null)));
  }

  /** Whether NVML is open to read. */
  private boolean openReadings() {
    if (readings == null) {
      Optional<NvmlCandidate> candidate = candidate();
      if (candidate.isEmpty()) {
        return false;
      }
      NvmlSession session = NvmlSession.open(candidate.get());
      OpenNvml.add(end);
      readings = session;
      reader = new NvmlReader(session);
      findUnlessKnown(session, candidate.get());
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

  /** A fault that was an event cannot be read afterwards. */
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
      candidate = candidate();
    } catch (VgpuException e) {
      return () -> {}; // whoever asks for the GPUs is told
    }
    return candidate.isEmpty()
        ? () -> {}
        : NvmlWatch.start(new WatchSource(candidate.get()), listener);
  }

  /** What the watch needs of this provider. */
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

  /** The processes that have a context on a GPU, by the driver's own account. */
  List<GpuReading.GpuProcess> processes(GpuId gpu) {
    Optional<NvmlCandidate> candidate = candidate();
    if (candidate.isEmpty()) {
      return List.of();
    }
    try (NvmlSession session = NvmlSession.open(candidate.get())) {
      return session.processes(gpu);
    }
  }

  /** Some machines allow no libraries in the directory for temporary files. */
  private List<Path> scratch() {
    List<Path> directories = new ArrayList<>();
    for (String variable : List.of("XDG_RUNTIME_DIR", "VGPU_RUN_DIR")) {
      String directory = environment.get(variable);
      if (directory != null && directory.startsWith("/")) {
        directories.add(Path.of(directory));
      }
    }
    directories.add(Path.of(System.getProperty("java.io.tmpdir", "/tmp")));
    return directories;
  }

  /** Looks at files only. */
  private Optional<NvmlCandidate> candidate() {
    String named = environment.get(NVML_VARIABLE);
    if (named != null && !named.isBlank()) {
      Path file = named(NVML_VARIABLE, named);
      if (!Files.isRegularFile(file)) {
        throw new GpuDriverException(NVML_VARIABLE + " names no file: " + named, null);
      }
      return Optional.of(new NvmlCandidate(NAME, file, null, scratch()));
    }
    for (Path place : places) {
      Path file = place.resolve(NVML_FILE);
      if (Files.exists(file)) {
        return Optional.of(new NvmlCandidate(NAME, file, null, scratch()));
      }
    }
    for (GpuDriver driver : drivers) {
      return Optional.of(new NvmlCandidate(driver.name(), driver.nvmlLibrary(), driver, scratch()));
    }
    return Optional.empty();
  }

  /** Variables may be inherited from another user, as after {@code su}: their files are not. */
  private static Path named(String variable, String name) {
    Path file = Path.of(name).toAbsolutePath();
    Optional<String> objection = TrustedFiles.objection(file);
    if (objection.isPresent()) {
      throw new GpuDriverException(
          variable + " names a file that cannot be used: " + objection.get(), null);
    }
    return file;
  }

  /** The CUDA driver that belongs to an NVML; null if it is the program's own matter. */
  private @Nullable Path cudaLibrary(Path nvml, @Nullable GpuDriver driver) {
    String named = environment.get(DRIVER_VARIABLE);
    if (named != null && !named.isBlank()) {
      return named(DRIVER_VARIABLE, named);
    }
    if (driver != null) {
      return driver.cudaLibrary();
    }
    Path beside = nvml.resolveSibling(CUDA_FILE);
    if (Files.exists(beside)) {
      return beside;
    }
    for (Path place : places) {
      if (Files.exists(place.resolve(CUDA_FILE))) {
        return place.resolve(CUDA_FILE);
      }
    }
    return null;
  }
}
