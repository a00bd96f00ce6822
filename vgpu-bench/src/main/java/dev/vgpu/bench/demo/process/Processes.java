package dev.vgpu.bench.demo.process;

import static java.nio.charset.StandardCharsets.UTF_8;
import static java.util.Objects.requireNonNull;

import com.fasterxml.jackson.core.JsonProcessingException;
import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ObjectNode;
import dev.vgpu.VgpuException;
import dev.vgpu.bench.demo.child.Children;
import dev.vgpu.bench.demo.figure.DemoOptions;
import dev.vgpu.bench.demo.load.JavaCommand;
import dev.vgpu.bench.demo.load.WorkDirectory;
import dev.vgpu.cli.console.Progress;
import dev.vgpu.cli.console.UserException;
import dev.vgpu.spi.GpuDriver;
import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.ServiceLoader;
import java.util.stream.Stream;

/**
 * The demo's second part: unmodified programs share one emulated device, and an online one preempts
 * the others. Confined to one thread.
 */
public final class Processes {
  private static final int STEPS = 3;
  private static final int SHOWN_LOG_LINES = 12;
  private static final List<String> PROGRAMS = List.of("spin", "burst", "hoard");

  private final Path programs;
  private final ProcessPhases phases;
  private final DemoBackend by;
  private final DemoOptions.Logs logs;
  private final Progress progress;

  private Processes(
      Path programs,
      DemoBackend by,
      DemoOptions.Length length,
      DemoOptions.Logs logs,
      Progress progress) {
    this.by = requireNonNull(by, "by");
    this.programs = requireNonNull(programs, "programs");
    this.phases = ProcessPhases.of(length);
    this.logs = requireNonNull(logs, "logs");
    this.progress = requireNonNull(progress, "progress");
  }

  /**
   * {@return the second part, after a check that its prerequisites are there}
   *
   * @param programs the directory of the sample programs
   * @param by how they share the device
   * @param length how long the demo takes
   * @param logs whether the processes' logs and files are kept
   * @param progress receives the steps; see {@link #steps}
   * @throws UserException if a program is missing
   */
  public static Processes of(
      Path programs,
      DemoBackend by,
      DemoOptions.Length length,
      DemoOptions.Logs logs,
      Progress progress)
      throws UserException {
    for (String program : PROGRAMS) {
      if (!Files.isExecutable(programs.resolve(program))) {
        throw new UserException(
            "the sample program "
                + programs.resolve(program)
                + " is not built; build it with: ./vgpu --help");
      }
    }
    return new Processes(programs, by, length, logs, progress);
  }

  /** {@return how many progress steps it has} */
  public static int steps() {
    return STEPS;
  }

  /**
   * {@return about how long it takes, in seconds}
   *
   * @param length how long the demo takes
   */
  public static long expectedSeconds(DemoOptions.Length length) {
    return Math.round(ProcessPhases.of(length).totalSeconds());
  }

  /**
   * {@return the measurements} Terminates all child processes, also on failure.
   *
   * @throws UserException if a prerequisite is missing or fails; the message says which
   * @throws IOException if a file cannot be written
   */
  public ObjectNode run() throws UserException, IOException {
    try (WorkDirectory directory = WorkDirectory.create(logs);
        MpsLeftovers daemons = new MpsLeftovers(directory.path());
        Children children = new Children()) {
      if (logs == DemoOptions.Logs.KEEP) {
        progress.say("logs and files of the programs: " + directory.path());
      }
      return run(daemons.directory(), children);
    } finally {
      progress.close();
    }
  }

  private ObjectNode run(Path directory, Children children) throws UserException, IOException {
    List<String> arguments =
        new ArrayList<>(List.of(programs.toString(), directory.toString(), by.name()));
    arguments.addAll(phases.arguments());
    Path log = directory.resolve("processes.log");
    ProcessBuilder builder =
        new ProcessBuilder(JavaCommand.own(ProcessesMain.class, arguments))
            .redirectError(log.toFile());
    setEnvironment(builder.environment(), directory);
    Process process = children.start(builder);
    String last = "";
    try (BufferedReader output =
        new BufferedReader(new InputStreamReader(process.getInputStream(), UTF_8))) {
      for (String line = output.readLine(); line != null; line = output.readLine()) {
        if (line.startsWith("{")) {
          last = line;
        } else {
          progress.begin(line);
        }
      }
    }
    return parse(last, log);
  }

  /** Selects the emulator, even where there is a driver, and a separate run directory. */
  private void setEnvironment(Map<String, String> environment, Path directory)
      throws UserException {
    GpuDriver driver =
        ServiceLoader.load(GpuDriver.class, Processes.class.getClassLoader())
            .findFirst()
            .orElseThrow(() -> new UserException("there is no emulator on the class path"));
    environment.keySet().removeIf(name -> name.startsWith("VGPU_"));
    environment.remove("LD_PRELOAD");
    environment.remove("CUDA_VISIBLE_DEVICES");
    try {
      environment.put("VGPU_NVML", driver.nvmlLibrary().toString());
      environment.put("VGPU_CUDA_DRIVER", driver.cudaLibrary().toString());
      driver.mpsControl().ifPresent(tool -> environment.put("VGPU_MPS_CONTROL", tool.toString()));
    } catch (VgpuException e) {
      throw new UserException("the emulator cannot be used: " + e.getMessage(), e);
    }
    environment.put("VGPU_RUN_DIR", directory.resolve(MpsLeftovers.RUN_DIRECTORY).toString());
    environment.put("VGPU_EMULATOR_DIR", directory.resolve("emulator").toString());
    environment.put("VGPU_EMULATOR", "devices=1,memory=16GiB" + by.emulatorSettings());
  }

  private static ObjectNode parse(String line, Path log) throws UserException, IOException {
    try {
      JsonNode json = new ObjectMapper().readTree(line);
      if (json instanceof ObjectNode object) {
        return object;
      }
    } catch (JsonProcessingException e) {
      // Reported below, with the log.
    }
    try (Stream<String> lines = Files.lines(log, UTF_8)) {
      List<String> all = lines.filter(each -> !each.startsWith("\tat ")).toList();
      List<String> shown = all.subList(Math.max(0, all.size() - SHOWN_LOG_LINES), all.size());
      throw new UserException(
          "the programs on the emulated device failed: " + String.join("\n  ", shown));
    }
  }
}
