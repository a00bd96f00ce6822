package dev.vgpu.emulator;

import dev.vgpu.files.LibraryPlace;
import dev.vgpu.request.MemorySize;
import dev.vgpu.spi.GpuDriver;
import java.nio.file.Path;
import java.util.Map;
import java.util.Objects;
import java.util.Optional;
import java.util.TreeMap;

/**
 * The emulated CUDA driver and NVML in this jar. Safe for use by several threads, and by several
 * processes at once.
 */
public final class EmulatorDriver implements GpuDriver {
  private final EmulatorSettings settings;
  private final NativeLibraryFile cuda;
  private final NativeLibraryFile nvml;
  private final NativeLibraryFile mpsControl;

  /** Creates the driver with this process's environment. */
  public EmulatorDriver() {
    this(System.getenv());
  }

  /**
   * Creates the driver with a given environment.
   *
   * @param environment variables by name
   */
  EmulatorDriver(Map<String, String> environment) {
    this.settings = EmulatorSettings.from(Objects.requireNonNull(environment, "environment"));
    Path libraries = settings.libraryDirectory(LibraryPlace.ofThisProcess(environment));
    this.cuda = new NativeLibraryFile("libcuda.so.1", settings, libraries);
    this.nvml = new NativeLibraryFile("libnvidia-ml.so.1", settings, libraries);
    this.mpsControl = new NativeLibraryFile("nvidia-cuda-mps-control", settings, libraries);
  }

  @Override
  public String name() {
    return "emulator";
  }

  @Override
  public Path cudaLibrary() {
    return cuda.path();
  }

  @Override
  public Path nvmlLibrary() {
    return nvml.path();
  }

  @Override
  public Optional<Path> mpsControl() {
    return Optional.of(mpsControl.path());
  }

  @Override
  public String scope() {
    return settings.stateDirectory().toString();
  }

  @Override
  public Map<String, String> environment() {
    Map<String, String> variables = new TreeMap<>();
    variables.put("VGPU_EMULATOR_DIR", scope());
    MemorySize context = settings.contextMemory();
    variables.put("VGPU_CONTEXT_MEMORY", Long.toString(context.bytes()));
    if (settings.text().isPresent()) {
      variables.put("VGPU_EMULATOR", settings.text().get());
    }
    return Map.copyOf(variables);
  }
}
