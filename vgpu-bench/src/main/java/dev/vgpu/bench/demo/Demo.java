package dev.vgpu.bench.demo;

import static java.util.Objects.requireNonNull;

import dev.vgpu.bench.demo.child.Children;
import dev.vgpu.bench.demo.figure.DemoOptions;
import dev.vgpu.bench.demo.figure.DemoResults;
import dev.vgpu.bench.demo.figure.Disturbance;
import dev.vgpu.bench.demo.figure.Phase;
import dev.vgpu.bench.demo.figure.PhaseSnapshot;
import dev.vgpu.bench.demo.figure.SixModels;
import dev.vgpu.bench.demo.figure.SliceResult;
import dev.vgpu.bench.demo.figure.Timing;
import dev.vgpu.bench.demo.load.JavaCommand;
import dev.vgpu.bench.demo.load.LoadProcess;
import dev.vgpu.bench.demo.load.WorkDirectory;
import dev.vgpu.bench.trace.CostCurve;
import dev.vgpu.bench.trace.Passages;
import dev.vgpu.bench.trace.Replay;
import dev.vgpu.bench.trace.Schedule;
import dev.vgpu.cli.console.Progress;
import dev.vgpu.cli.console.UserException;
import dev.vgpu.cli.time.NanoClock;
import java.io.IOException;
import java.time.Duration;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

/** Runs the demo's phases and collects the measurements. Confined to one thread. */
public final class Demo {
  private static final String ONLINE_PATH = "/embed";
  private static final int[] CALIBRATED_TOKENS = {16, 64, 128, 256, 512, 1024, 2048};
  private static final int WARM_RUNS = 30;
  private static final int LONG_RUNS = 5;
  private static final int SHORT_RUNS = 15;

  private final DemoOptions options;
  private final Timing timing;
  private final NanoClock clock;
  private final Progress progress;

  /**
   * Creates a demo.
   *
   * @param options the demo's options
   * @param clock the clock
   * @param progress receives the steps; see {@link #steps}
   */
  public Demo(DemoOptions options, NanoClock clock, Progress progress) {
    this.options = requireNonNull(options, "options");
    this.timing = options.timing();
    this.clock = requireNonNull(clock, "clock");
    this.progress = requireNonNull(progress, "progress");
  }

  /**
   * {@return how many progress steps such a demo has}
   *
   * @param length how long the demo takes
   */
  public static int steps(DemoOptions.Length length) {
    Schedule none = new Schedule(List.of(), 1);
    return 3 + Slice.plan(Timing.of(length), none, none).size();
  }

  /** {@return about how long the demo takes, in seconds} */
  public long expectedSeconds() {
    return timing.totalSeconds();
  }

  /**
   * Runs all phases. Terminates all child processes, also on failure.
   *
   * @return the measurements
   * @throws UserException if a process fails; the message says why
   * @throws IOException if a file cannot be written, or if the server breaks its protocol
   * @throws InterruptedException if this thread is interrupted
   */
  public DemoResults run() throws UserException, IOException, InterruptedException {
    try (WorkDirectory directory = WorkDirectory.create(options.logs());
        Children children = new Children()) {
      if (options.logs() == DemoOptions.Logs.KEEP) {
        progress.say("logs and files of this run: " + directory.path());
      }
      progress.begin("starting the sample server");
      ServerProcess server =
          ServerProcess.start(
              children,
              JavaCommand.server(options.serverClassPath(), options.serverClass()),
              directory.path().resolve("server.log"));
      LoadProcess load = LoadProcess.start(children, server.address(), directory.path(), clock);
      return run(server, load, children);
    } finally {
      progress.close();
    }
  }

  private DemoResults run(ServerProcess server, LoadProcess load, Children children)
      throws UserException, IOException, InterruptedException {
    progress.begin("measuring what a request costs");
    CostCurve costs = calibrate(server);
    double part = options.loadPercent() / 100.0;
    Replay replay = Replay.of(options.trace(), costs, part, timing.onlineNs(), ONLINE_PATH);
    progress.say("online load: " + replay.description());
    warmUp(server, load, costs, part);
    Schedule sixModels =
        SixModels.schedule(costs, timing.sixModelsNs(), timing.burstFromNs(), timing.burstToNs());
    Disturbance.Reading before = Disturbance.Reading.of(children);
    List<SliceResult> results = new ArrayList<>();
    for (Slice slice : Slice.plan(timing, replay.schedule(), sixModels)) {
      results.add(run(slice, server, load));
    }
    Disturbance disturbance = Disturbance.Reading.of(children).since(before);
    return new DemoResults(options.loadPercent(), replay, timing, disturbance, results);
  }

  private CostCurve calibrate(ServerProcess server)
      throws UserException, IOException, InterruptedException {
    Passages passages = new Passages();
    server.calibrate(passages.of(Passages.MAX_PASSAGE_TOKENS, 0), WARM_RUNS);
    Map<Integer, Long> costs = new LinkedHashMap<>();
    for (int tokens : CALIBRATED_TOKENS) {
      int runs = tokens > Passages.MAX_PASSAGE_TOKENS ? LONG_RUNS : SHORT_RUNS;
      costs.put(tokens, server.calibrate(passages.of(tokens, tokens), runs));
    }
    return new CostCurve(costs);
  }

  /** Runs the later load beside offline work, so that all code is compiled before measuring. */
  private void warmUp(ServerProcess server, LoadProcess load, CostCurve costs, double part)
      throws UserException, IOException, InterruptedException {
    progress.begin("warming up");
    server.begin(Phase.VGPU);
    server.embed(new Passages().of(Passages.MAX_PASSAGE_TOKENS, 0));
    Replay replay = Replay.of(options.trace(), costs, part, timing.warmUpNs(), ONLINE_PATH);
    load.prepare(replay.schedule());
    load.run(progress);
  }

  private SliceResult run(Slice slice, ServerProcess server, LoadProcess load)
      throws UserException, IOException, InterruptedException {
    progress.begin(slice.phase().title());
    boolean sendsRequests = !slice.schedule().requests().isEmpty();
    server.begin(slice.phase());
    if (sendsRequests) {
      load.prepare(slice.schedule());
    }
    clock.sleepUntil(clock.nowNs() + timing.leadInNs());
    PhaseSnapshot before = server.snapshot();
    long startNs = clock.nowNs();
    if (!sendsRequests) {
      progress.await(Duration.ofNanos(slice.schedule().lengthNs()));
      return SliceResult.between(slice.phase(), before, server.snapshot(), 0, List.of());
    }
    LoadProcess.Outcome outcome = load.run(progress);
    return SliceResult.between(
        slice.phase(), before, server.snapshot(), outcome.zeroNs() - startNs, outcome.results());
  }
}
