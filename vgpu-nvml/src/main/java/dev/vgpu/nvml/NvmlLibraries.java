package dev.vgpu.nvml;

import dev.vgpu.GpuDriverException;
import dev.vgpu.files.TrustedFiles;
import dev.vgpu.nvml.binding.Nvml;
import dev.vgpu.spi.GpuDriver;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.concurrent.ConcurrentHashMap;
import org.jspecify.annotations.Nullable;

/**
 * Finds the NVML and the CUDA driver that belong together: those that variables name, else the
 * machine's own if its kernel driver is loaded, else those of a driver from a jar. Safe for use by
 * several threads.
 */
final class NvmlLibraries {
  static final String NVML_VARIABLE = "VGPU_NVML";
  static final String DRIVER_VARIABLE = "VGPU_CUDA_DRIVER";
  private static final String NAME = "nvml";
  private static final String NVML_FILE = "libnvidia-ml.so.1";
  private static final String CUDA_FILE = "libcuda.so.1";

  /** NVIDIA's kernel driver makes this file (not in WSL, where the driver is the host's). */
  private static final Path LOADED = Path.of("/proc/driver/nvidia/version");

  /** Debian's and Ubuntu's directory of libraries. */
  private static final String MULTIARCH =
      System.getProperty("os.arch", "").equals("aarch64")
          ? "aarch64-linux-gnu"
          : "x86_64-linux-gnu";

  static final List<Path> USUAL_PLACES =
      List.of(
          Path.of("/usr/lib", MULTIARCH),
          Path.of("/usr/lib64"),
          Path.of("/usr/lib"),
          Path.of("/usr/lib", MULTIARCH, "nvidia/current"),
          Path.of("/usr/local/nvidia/lib64"),
          Path.of("/usr/local/nvidia/lib"),
          Path.of("/usr/lib/wsl/lib"),
          Path.of("/run/opengl-driver/lib"));

  private final Map<String, String> environment;
  private final List<Path> places;
  private final Iterable<GpuDriver> drivers;

  /** By file: whether a library of the machine has said that its driver is not loaded. */
  private final Map<Path, Boolean> idle = new ConcurrentHashMap<>();

  NvmlLibraries(Map<String, String> environment, List<Path> places, Iterable<GpuDriver> drivers) {
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

  /** {@return why there is no NVML} */
  String nothingFound() {
    return "no NVIDIA driver: "
        + NVML_VARIABLE
        + " is not set, and there is no "
        + NVML_FILE
        + " in "
        + places;
  }

  /** Some machines mount the temporary directory noexec. */
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

  /** {@return the library to use, if there is one} */
  Optional<NvmlCandidate> candidate() {
    String named = environment.get(NVML_VARIABLE);
    if (named != null && !named.isBlank()) {
      Path file = named(NVML_VARIABLE, named);
      if (!Files.isRegularFile(file)) {
        throw new GpuDriverException(NVML_VARIABLE + " names no file: " + named, null);
      }
      return Optional.of(new NvmlCandidate(NAME, file, null, scratch()));
    }
    Optional<NvmlCandidate> own = own();
    for (GpuDriver driver : drivers) {
      if (own.isEmpty() || isIdle(own.get())) {
        return Optional.of(
            new NvmlCandidate(driver.name(), driver.nvmlLibrary(), driver, scratch()));
      }
    }
    return own;
  }

  /** {@return the machine's own library} */
  private Optional<NvmlCandidate> own() {
    for (Path place : places) {
      Path file = place.resolve(NVML_FILE);
      if (Files.exists(file)) {
        return Optional.of(new NvmlCandidate(NAME, file, null, scratch()));
      }
    }
    return Optional.empty();
  }

  /**
   * {@return whether a library says that its kernel driver is not loaded} Such a library is in
   * images for GPUs that run on a machine without one. It is asked once, so that all answers of
   * this provider are about the same driver.
   */
  private boolean isIdle(NvmlCandidate own) {
    return idle.computeIfAbsent(own.nvml(), file -> !Files.exists(LOADED) && saysIdle(own));
  }

  private static boolean saysIdle(NvmlCandidate own) {
    try {
      NvmlSession.open(own).close();
      return false;
    } catch (GpuDriverException e) {
      return e.code().orElse(0) == Nvml.NVML_ERROR_DRIVER_NOT_LOADED;
    }
  }

  /** A variable may be inherited from another user, as after {@code su}: check its file. */
  private static Path named(String variable, String name) {
    Path file = Path.of(name).toAbsolutePath();
    Optional<String> objection = TrustedFiles.objection(file);
    if (objection.isPresent()) {
      throw new GpuDriverException(
          variable + " names a file that cannot be used: " + objection.get(), null);
    }
    return file;
  }

  /** {@return the CUDA driver that belongs to an NVML; null if each program finds its own} */
  @Nullable Path cudaLibrary(NvmlCandidate of) {
    String named = environment.get(DRIVER_VARIABLE);
    if (named != null && !named.isBlank()) {
      return named(DRIVER_VARIABLE, named);
    }
    GpuDriver driver = of.driver();
    if (driver != null) {
      return driver.cudaLibrary();
    }
    Path beside = of.nvml().resolveSibling(CUDA_FILE);
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
