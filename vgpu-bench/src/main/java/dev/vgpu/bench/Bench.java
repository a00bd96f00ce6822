package dev.vgpu.bench;

import com.fasterxml.jackson.databind.ObjectMapper;
import dev.vgpu.bench.chaos.Chaos;
import dev.vgpu.bench.chaos.ChaosOptions;
import dev.vgpu.bench.chaos.soak.Soak;
import dev.vgpu.bench.chaos.soak.SoakOptions;
import dev.vgpu.bench.colocation.Colocation;
import dev.vgpu.bench.colocation.ColocationOptions;
import dev.vgpu.bench.colocation.ColocationPlot;
import dev.vgpu.bench.colocation.Storm;
import dev.vgpu.bench.cost.AllocBench;
import dev.vgpu.bench.cost.LaunchBench;
import dev.vgpu.bench.cost.MeasureBench;
import dev.vgpu.bench.cost.NvmlBench;
import dev.vgpu.bench.cost.StartBench;
import dev.vgpu.bench.cost.SuspendBench;
import dev.vgpu.bench.death.KillBench;
import dev.vgpu.bench.death.SeatBench;
import dev.vgpu.bench.fairness.Fairness;
import dev.vgpu.bench.gpucheck.CheckOptions;
import dev.vgpu.bench.gpucheck.GpuCheck;
import dev.vgpu.bench.harness.Arguments;
import dev.vgpu.bench.harness.Node;
import dev.vgpu.bench.placement.FleetBench;
import dev.vgpu.bench.placement.MigBench;
import dev.vgpu.bench.report.ProcessBench;
import dev.vgpu.bench.report.Report;
import dev.vgpu.bench.share.Level2Bench;
import dev.vgpu.bench.share.PreemptBench;
import dev.vgpu.bench.share.QuotaBench;
import dev.vgpu.bench.share.ShareBench;
import dev.vgpu.bench.turns.SchedulerBench;
import dev.vgpu.bench.turns.TurnsBench;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.concurrent.CompletableFuture;
import picocli.CommandLine.ParameterException;

/** The benchmarks' main class: {@code Bench [name...] [--quick] [--json]}. */
public final class Bench {
  private static final String USAGE =
      """
      usage: vgpu bench [name...] [--quick] [--json]
        turns    what turns inside a JVM cost, beside a fair semaphore and a fair lock
        mig      where MIG instances are placed, beside first-fit, best-fit and exhaustive search
        scheduler  what a decision of the share scheduler costs at 2 to 1,024 tenants
        launch   what the hook adds to a launch, without and with a limit
        measure  what measuring GPU time costs, with a driver whose calls cost what real ones do
        alloc    what the hook adds to an alloc and free, by live allocations
        share    whether a share of 50 % is held, kernels and graphs; two processes of a tenant; 75/25
        quota    whether a quota is ever passed by 8 processes of 8 threads
        colocation [--trace conv|code] [--kernels short|mixed] [--load PERCENT]
                 requests of Azure's traces beside training loops, with and without vgpu
        fairness 2 to 16 tenants of all policies: what each held of every second
        storm    1,000 short requests a second beside training loops; a seat at rest
        preempt  how soon offline gates are closed when an idle online tenant begins
        kill     [--stalls FILE]
                 how long 1,000 deaths and 1,000 stops of processes hold others up; where the worst
                 ten stalls come from
        seat     how long the death of the seat's holder holds others up; take-over
        start    attaching and making contexts, one and a hundred at once; opening pools
        suspend  how long it takes to suspend a program and to bring it back, by what it holds
        fleet [--data DIRECTORY]
                 what placement policies give away of a cluster, and how long a decision takes;
                 the directory holds openb's files (or VGPU_OPENB names it)
        nvml     what reading 8 GPUs costs: a snapshot, a million polls, watching at 1 Hz
        level2   how soon an offline kernel of 10 ms gives the GPU to an online tenant that begins
      vgpu bench gpu-check ...
                 what vgpu gpu-check runs
      vgpu bench plot FILE... OUT.svg
                 draws what colocation --json printed
        --keep FILE  writes the JSON object there as well
        --quick  a tenth of the time, with rougher figures
        --json   one JSON object on standard output
      Without a name, all run. Other load on the machine makes the figures rougher.
      All but turns, scheduler, mig and fleet start real processes, over a GPU or the emulator;
      they need a C compiler.
      """;

  /** The system property with the id of the command's process, with which this process ends. */
  private static final String COMMAND_PID = "vgpu.command.pid";

  private static final int TERMINATED = 143;

  private static final List<String> NAMES =
      List.of(
          "turns",
          "scheduler",
          "mig",
          "launch",
          "measure",
          "alloc",
          "share",
          "quota",
          "preempt",
          "kill",
          "seat",
          "start",
          "suspend",
          "level2",
          "nvml",
          "fleet",
          "colocation",
          "fairness",
          "storm");

  private Bench() {}

  /**
   * Runs benchmarks.
   *
   * @param args see the usage
   * @throws Exception if a benchmark fails
   */
  public static void main(String[] args) throws Exception {
    List<String> names = new ArrayList<>(List.of(args));
    if (!names.isEmpty()) {
      command(names.get(0), names.subList(1, names.size()));
    }
    boolean quick = names.remove("--quick");
    boolean json = names.remove("--json");
    if (names.contains("--help") || names.contains("-h")) {
      System.out.print(USAGE);
      return;
    }
    if (!names.isEmpty() && names.get(0).equals("plot")) {
      plot(names.subList(1, names.size()));
      return;
    }
    String keep = value(names, "--keep", "");
    String stalls = value(names, "--stalls", "");
    String openb = System.getenv().getOrDefault("VGPU_OPENB", "");
    String data = value(names, "--data", openb);
    ColocationOptions colocation = colocationOptions(names, quick);
    for (String name : names) {
      if (!NAMES.contains(name)) {
        System.err.print("bench: what is '" + name + "'?\n" + USAGE);
        System.exit(2);
      }
    }
    Report report = new Report(what -> System.err.println("bench: " + what));
    for (String name : names.isEmpty() ? NAMES : names) {
      if (name.equals("fleet")) {
        new FleetBench(report, quick, data).run();
      } else {
        run(name, report, quick, colocation, stalls);
      }
    }
    Map<String, Object> all = new LinkedHashMap<>(report.figures());
    all.putAll(Surroundings.figures());
    String object =
        new ObjectMapper().writerWithDefaultPrettyPrinter().writeValueAsString(all) + "\n";
    if (!keep.isEmpty()) {
      Files.writeString(Path.of(keep), object);
    }
    System.out.print(json ? object : report.text());
  }

  /** Runs a command's part, and ends this process; returns if there is no such command. */
  private static void command(String name, List<String> arguments) throws Exception {
    switch (name) {
      case "chaos" -> System.exit(Chaos.run(parsed(name, new ChaosOptions(), arguments)));
      case "soak" ->
          System.exit(Soak.run(parsed(name, new SoakOptions(), arguments), Surroundings::figures));
      case "gpu-check" -> {
        endWith(System.getProperty(COMMAND_PID, ""));
        System.exit(GpuCheck.run(parsed(name, new CheckOptions(), arguments)));
      }
      case "gpu-check-step" -> System.exit(GpuCheck.step(arguments));
      default -> {}
    }
  }

  private static <T> T parsed(String name, T options, List<String> arguments) {
    try {
      return Arguments.parse(options, arguments);
    } catch (ParameterException e) {
      System.err.println(name + ": " + e.getMessage());
      System.exit(2);
      throw e;
    }
  }

  private static void endWith(String pid) {
    if (pid.isEmpty()) {
      return;
    }
    Optional<ProcessHandle> command = ProcessHandle.of(Long.parseLong(pid));
    if (command.isEmpty()) {
      System.exit(TERMINATED);
    }
    CompletableFuture<Void> ignored = command.get().onExit().thenRun(() -> System.exit(TERMINATED));
  }

  private static void plot(List<String> files) throws IOException {
    if (files.size() < 2) {
      System.err.print("bench: plot needs files, and where to draw\n" + USAGE);
      System.exit(2);
    }
    List<Path> results = files.subList(0, files.size() - 1).stream().map(Path::of).toList();
    Files.writeString(Path.of(files.get(files.size() - 1)), ColocationPlot.svg(results));
  }

  /** {@return the value of an option, or a default if the option is missing} */
  private static String value(List<String> arguments, String option, String other) {
    try {
      return ColocationOptions.value(arguments, option, other);
    } catch (IllegalArgumentException e) {
      System.err.print("bench: " + e.getMessage() + "\n" + USAGE);
      System.exit(2);
      throw e;
    }
  }

  private static ColocationOptions colocationOptions(List<String> arguments, boolean quick) {
    try {
      return ColocationOptions.take(arguments, quick);
    } catch (IllegalArgumentException e) {
      System.err.print("bench: " + e.getMessage() + "\n" + USAGE);
      System.exit(2);
      throw e;
    }
  }

  private static void run(
      String name, Report report, boolean quick, ColocationOptions colocationOptions, String stalls)
      throws Exception {
    switch (name) {
      case "turns" -> {
        TurnsBench turns = new TurnsBench(quick, report::progress);
        turns.run();
        report.figures(turns.figures());
        report.text(turns.text());
      }
      case "scheduler" -> SchedulerBench.run(report, quick);
      case "nvml" -> new NvmlBench(report, quick).run();
      case "mig" -> new MigBench(report, quick).run();
      case "level2" -> new Level2Bench(report, quick).run();
      case "measure" -> new MeasureBench(report, quick).run();
      case "preempt" -> new PreemptBench(report, quick).run();
      case "colocation" -> {
        Colocation colocation = new Colocation(colocationOptions, report::progress);
        colocation.run();
        report.figures(colocation.figures());
        report.text(colocation.text());
      }
      case "fairness" -> {
        Fairness fairness = new Fairness(quick, report::progress);
        fairness.run();
        report.figures(fairness.figures());
        report.text(fairness.text());
      }
      case "storm" -> {
        Storm storm = new Storm(quick, report::progress);
        storm.run();
        report.figures(storm.figures());
        report.text(storm.text());
      }
      default -> onNode(name, report, quick, stalls);
    }
  }

  private static void onNode(String name, Report report, boolean quick, String stalls)
      throws InterruptedException {
    try (Node node = Node.open(Map.of())) {
      try {
        processBench(name, stalls).run(node, report, quick);
      } catch (IllegalStateException e) {
        throw new IllegalStateException(
            "bench " + name + ": " + e.getMessage() + "\n" + node.errors(), e);
      }
    }
  }

  private static ProcessBench processBench(String name, String stalls) {
    return switch (name) {
      case "launch" -> new LaunchBench();
      case "alloc" -> new AllocBench();
      case "share" -> new ShareBench();
      case "quota" -> new QuotaBench();
      case "suspend" -> new SuspendBench();
      case "kill" -> new KillBench(stalls);
      case "seat" -> new SeatBench();
      default -> new StartBench();
    };
  }
}
