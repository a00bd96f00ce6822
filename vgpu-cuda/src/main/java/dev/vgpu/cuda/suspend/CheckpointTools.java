package dev.vgpu.cuda.suspend;

import dev.vgpu.VgpuException;
import dev.vgpu.cuda.files.HookLibrary;
import dev.vgpu.cuda.layout.HookEnvironment;
import dev.vgpu.files.TrustedFiles;
import dev.vgpu.spi.GpuDriver;
import java.io.File;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.HashMap;
import java.util.Map;
import java.util.Optional;
import java.util.ServiceLoader;
import java.util.concurrent.TimeUnit;

/**
 * Finds a tool that can suspend processes on this machine: the driver's own functions, else
 * NVIDIA's program in {@code PATH}. Searches on first use. Safe for use by several threads.
 */
final class CheckpointTools {
  private static final String CUDA_CHECKPOINT = "cuda-checkpoint";
  private static final long PROBE_NS = TimeUnit.SECONDS.toNanos(10);
  private static final Path PROC = Path.of("/proc");

  private final Map<String, String> environment;
  private final Path runDirectory;
  private final Map<String, Found> found = new HashMap<>();

  /** A tool, or the reason why there is none. */
  record Found(Optional<CheckpointTool> tool, String reason) {}

  CheckpointTools(Map<String, String> environment, Path runDirectory) {
    this.environment = Map.copyOf(environment);
    this.runDirectory = runDirectory;
  }

  /** {@return the tool for the GPUs of a provider} */
  synchronized Found of(String provider) {
    return found.computeIfAbsent(provider, this::find);
  }

  private Found find(String provider) {
    StringBuilder reasons = new StringBuilder();
    Optional<CheckpointTool> tool = ofDriver(provider, reasons);
    if (tool.isEmpty()) {
      tool = ofPath(reasons);
    }
    return new Found(tool, reasons.toString());
  }

  private Optional<CheckpointTool> ofDriver(String provider, StringBuilder reasons) {
    try {
      Path program = HookLibrary.checkpointProgram(environment).in(runDirectory);
      ToolProcess process = new ToolProcess(program.toString(), driver(provider));
      ToolProcess.Outcome probed = process.run(PROBE_NS, "--probe");
      if (probed.isDone()) {
        return Optional.of(
            new ActionTool(process, "the driver's checkpoint (" + probed.out() + ")"));
      }
      reasons.append(probed.reason());
    } catch (VgpuException | UncheckedIOException e) {
      reasons.append(e.getMessage());
    }
    return Optional.empty();
  }

  /**
   * The variables that name the driver to the program, as they do to the hook. The program inherits
   * those of this process, which may be another user's, as after {@code su}.
   */
  private Map<String, String> driver(String provider) {
    String named = environment.get(HookEnvironment.VGPU_CUDA_DRIVER);
    if (named != null) {
      Optional<String> objection = TrustedFiles.objection(Path.of(named).toAbsolutePath());
      if (objection.isPresent()) {
        throw new VgpuException(
            "VGPU_CUDA_DRIVER names a file that cannot be used: " + objection.get());
      }
      return Map.of();
    }
    ClassLoader own = CheckpointTools.class.getClassLoader();
    for (GpuDriver driver : ServiceLoader.load(GpuDriver.class, own)) {
      if (driver.name().equals(provider)) {
        Map<String, String> variables = new HashMap<>(driver.environment());
        variables.put(HookEnvironment.VGPU_CUDA_DRIVER, driver.cudaLibrary().toString());
        return variables;
      }
    }
    return Map.of();
  }

  private Optional<CheckpointTool> ofPath(StringBuilder reasons) {
    Optional<Path> program = inPath();
    if (program.isEmpty()) {
      reasons.append("; and there is no ").append(CUDA_CHECKPOINT).append(" in PATH");
      return Optional.empty();
    }
    String name = program.get().toString();
    ToolProcess process = new ToolProcess(name, Map.of());
    String help;
    try {
      ToolProcess.Outcome asked = process.run(PROBE_NS, "--help");
      help = asked.out() + asked.err();
    } catch (UncheckedIOException e) {
      help = String.valueOf(e.getMessage());
    }
    if (help.contains("--action") && help.contains("--get-state")) {
      return Optional.of(new ActionTool(process, name));
    }
    if (help.contains("--toggle")) {
      return Optional.of(new ToggleTool(process, PROC));
    }
    reasons
        .append("; and ")
        .append(name)
        .append(" is not a known version of cuda-checkpoint: ")
        .append(help);
    return Optional.empty();
  }

  private Optional<Path> inPath() {
    for (String directory : environment.getOrDefault("PATH", "").split(File.pathSeparator, -1)) {
      Path candidate = Path.of(directory.isEmpty() ? "." : directory, CUDA_CHECKPOINT);
      if (Files.isExecutable(candidate) && Files.isRegularFile(candidate)) {
        return Optional.of(candidate.toAbsolutePath());
      }
    }
    return Optional.empty();
  }
}
