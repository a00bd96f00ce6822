package dev.vgpu.bench.gpucheck;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import dev.vgpu.bench.gpucheck.machine.Done;
import dev.vgpu.bench.gpucheck.machine.Outcome;
import dev.vgpu.bench.gpucheck.machine.Place;
import dev.vgpu.bench.gpucheck.machine.WorkPlace;
import dev.vgpu.bench.harness.NanoClock;
import dev.vgpu.bench.harness.Node;
import java.io.File;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Objects;
import java.util.function.BooleanSupplier;

/** Runs the steps one after the other. Confined to one thread. */
final class CheckRun {
  private static final int INTERRUPTED = 130;

  /** A step is skipped if less time than this is left for it. */
  private static final double LEAST_SECONDS = 5;

  /** The longest time that ending a step takes. */
  private static final double ENDING_SECONDS = 6;

  private static final double START_SECONDS = 60;
  private static final String FAULTS = "faults";
  private static final List<String> LIBRARIES = List.of("libcuda.so.1", "libnvidia-ml.so.1");
  private static final List<String> VARIABLES = List.of("VGPU_CUDA_DRIVER", "VGPU_NVML");

  private final CheckOptions options;
  private final Map<String, String> environment = new HashMap<>();
  private final long beginNs = NanoClock.nanoTime();

  CheckRun(CheckOptions options) {
    this.options = options;
  }

  /** Runs the steps; returns the exit code. */
  int run() throws IOException, InterruptedException {
    WorkPlace work = WorkPlace.make();
    Thread atEnd = new Thread(work::end, "end-of-the-check");
    Runtime.getRuntime().addShutdownHook(atEnd);
    try {
      return run(Place.of(work.directory()), work::isEnding);
    } finally {
      if (options.keep) {
        System.err.println("gpu-check: the working directory is " + work.directory());
        work.keep();
      } else {
        work.remove();
      }
      try {
        Runtime.getRuntime().removeShutdownHook(atEnd);
      } catch (IllegalStateException e) {
        // This JVM is already shutting down.
      }
    }
  }

  private int run(Place place, BooleanSupplier isEnding) throws IOException, InterruptedException {
    Path program = place.program().orElse(null);
    if (program == null) {
      program = Node.buildProgram(Files.createDirectory(place.work().resolve("c")));
    }
    options.driver().ifPresent(directory -> useDriver(directory, place));
    environment.put("VGPU_BENCH_PROGRAM", program.toString());
    environment.put("VGPU_BENCH_DIR", place.work().toString());
    environment.put(
        "VGPU_BENCH_KEEP",
        "VGPU_CUDA_DRIVER,VGPU_NVML,VGPU_HOOK_LOG,VGPU_EMULATOR,VGPU_EMULATOR_RM");
    environment.put("VGPU_HOOK_LOG", place.work().resolve("hook.log").toString());
    String missing = findDriver(place, program);
    Done about = own(place, program, "about");
    if (missing.isEmpty() && !about.isOk()) {
      missing = about.out().isBlank() ? about.why() : about.out().strip();
    }
    if (!missing.isEmpty()) {
      System.err.println(
          "gpu-check: there is no NVIDIA GPU here that CUDA programs can use: "
              + missing
              + ". This command needs one; ./vgpu bench and ./vgpu test do not.");
      return 1;
    }
    ObjectNode gpu = about.json().deepCopy();
    gpu.put(Place.STAND_IN, options.driver().isPresent());
    Files.writeString(place.work().resolve(Place.ABOUT), gpu.toString());
    Files.createDirectories(options.out());
    Report report = new Report(options, place, about.json());
    System.err.println("gpu-check: " + report.title());
    sayWhatMayStarve();
    Process faults = watchFaults(place, program);
    try {
      for (StepName step : StepName.values()) {
        if (isEnding.getAsBoolean()) {
          return INTERRUPTED;
        }
        if (options.isWanted(step)) {
          report.add(step, step(place, program, step));
          report.write(seconds());
        }
      }
    } finally {
      faults.destroyForcibly().waitFor();
    }
    report.end(seconds());
    System.out.print(options.json.isGiven() ? report.json() : report.text());
    return report.isGood() ? 0 : 1;
  }

  private void sayWhatMayStarve() {
    double sum =
        Arrays.stream(StepName.values())
            .filter(options::isWanted)
            .mapToDouble(options::limitSeconds)
            .sum();
    if (sum > options.budgetSeconds) {
      System.err.printf(
          Locale.ROOT,
          "gpu-check: the limits of these steps add up to %.0f s, of a budget of %.0f: the last ones"
              + " may not run; --part 1 and --part 2 fit each%n",
          sum,
          options.budgetSeconds);
    }
  }

  /** Starts a program that writes the GPU's faults, as NVML reports them, to a file by lines. */
  private Process watchFaults(Place place, Path program) throws IOException {
    Path file = place.work().resolve(FAULTS);
    ProcessBuilder builder = new ProcessBuilder(program.toString(), "xids", file.toString());
    adapt(builder.environment());
    return builder
        .redirectOutput(ProcessBuilder.Redirect.DISCARD)
        .redirectError(ProcessBuilder.Redirect.DISCARD)
        .start();
  }

  private static List<String> faults(Place place) {
    return Outcome.linesOf(place.work().resolve(FAULTS)).stream()
        .filter(line -> line.startsWith("Xid "))
        .toList();
  }

  /** Makes a test's driver take precedence for all programs. */
  private void useDriver(Path directory, Place place) {
    String own = System.getenv("LD_LIBRARY_PATH");
    environment.put(
        "LD_LIBRARY_PATH",
        directory + (own == null || own.isEmpty() ? "" : File.pathSeparator + own));
    // The driver's tools that lie beside it take precedence.
    environment.put(
        "PATH",
        directory
            + File.pathSeparator
            + Objects.requireNonNullElse(System.getenv("PATH"), "/usr/bin:/bin"));
    // A directory of our own in case it is the emulator: the first process defines its GPUs.
    environment.put("VGPU_EMULATOR_DIR", place.work().resolve("emulator").toString());
    // Clears settings that this shell may have made for another driver.
    VARIABLES.forEach(name -> environment.put(name, ""));
  }

  /**
   * Finds the driver as the C library's loader does. Returns why there is none, or an empty text.
   */
  private String findDriver(Place place, Path program) throws InterruptedException {
    Done where = own(place, program, "where", LIBRARIES.get(0), LIBRARIES.get(1));
    for (int i = 0; i < LIBRARIES.size(); i++) {
      String found = "path " + LIBRARIES.get(i) + " ";
      String none = "none " + LIBRARIES.get(i) + " ";
      for (String line : where.out().split("\n", -1)) {
        if (line.startsWith(found)) {
          environment.put(VARIABLES.get(i), line.substring(found.length()));
        } else if (line.startsWith(none)) {
          return line.substring(none.length());
        }
      }
    }
    return where.isOk() ? "" : where.why();
  }

  private Done own(Place place, Path program, String... arguments) throws InterruptedException {
    List<String> command = new ArrayList<>(List.of(program.toString()));
    command.addAll(List.of(arguments));
    return Done.run(command, this::adapt, place.work(), START_SECONDS);
  }

  private void adapt(Map<String, String> variables) {
    environment.forEach(
        (name, value) -> {
          if (value.isEmpty()) {
            variables.remove(name);
          } else {
            variables.put(name, value);
          }
        });
  }

  private Outcome step(Place place, Path program, StepName step) throws InterruptedException {
    double left = options.budgetSeconds - seconds() - ENDING_SECONDS;
    double wanted = options.limitSeconds(step);
    double limit = Math.min(wanted, left);
    if (limit < LEAST_SECONDS) {
      return Outcome.notRun(
          String.format(
              Locale.ROOT,
              "no time left of %.0f s; --part %d or --only %s runs it",
              options.budgetSeconds,
              step.part(),
              step.word()));
    }
    System.err.printf(
        Locale.ROOT, "gpu-check: %s: %s (%.0f s at most)%n", step.word(), step.what(), limit);
    List<String> command =
        new ArrayList<>(
            List.of(program.toString(), "session", String.format(Locale.ROOT, "%.3f", limit)));
    command.addAll(Place.bench());
    command.addAll(List.of("gpu-check-step", step.word(), place.work().toString()));
    if (options.quick) {
      command.add("--quick");
    }
    int faultsBefore = faults(place).size();
    // More than the step's own limit, after which the program that leads its session ends it.
    Done done = Done.run(command, this::adapt, place.work(), limit + ENDING_SECONDS);
    JsonNode found = Outcome.read(place.work().resolve(step.word() + ".json"));
    List<String> faults = faults(place);
    String starved =
        limit < wanted
            ? String.format(Locale.ROOT, "; it had %.0f s left of its %.0f", limit, wanted)
            : "";
    return Outcome.of(
        done,
        found,
        Outcome.tailOf(place.work().resolve("hook.log")),
        starved,
        faults.subList(Math.min(faultsBefore, faults.size()), faults.size()));
  }

  private double seconds() {
    return (NanoClock.nanoTime() - beginNs) / 1e9;
  }
}
