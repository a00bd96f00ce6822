package dev.vgpu.bench.gpucheck.step;

import com.fasterxml.jackson.databind.node.ObjectNode;
import dev.vgpu.bench.gpucheck.machine.CheckNode;
import dev.vgpu.bench.gpucheck.machine.Findings;
import dev.vgpu.bench.gpucheck.machine.Outcome;
import dev.vgpu.bench.gpucheck.machine.Place;
import dev.vgpu.bench.gpucheck.rm.Contender;
import dev.vgpu.bench.gpucheck.rm.Contender.Latency;
import dev.vgpu.bench.gpucheck.rm.Contender.Reading;
import dev.vgpu.bench.gpucheck.rm.Rates;
import dev.vgpu.bench.gpucheck.rm.TurnsTool;
import dev.vgpu.bench.harness.Answer;
import dev.vgpu.bench.harness.NanoClock;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Locale;

/**
 * What {@code vgpu-turns} does to two programs that compete for the GPU: the weights, the stop of
 * an offline program, and what is left after its end. Confined to one thread.
 */
final class TurnsRows implements AutoCloseable {
  private static final String DIVIDES_NOT =
      "vgpu-turns, and the kernel module, do not divide this GPU's time by their weights";
  private static final String GIVES_NOT_BACK =
      "programs do not run as before when vgpu-turns has ended";
  private static final String STOPS_NOT = "vgpu-turns cannot stop offline programs for online ones";

  private static final int KERNEL_US = 200;
  private static final int LONG_KERNEL_TIMES = 5;
  private static final int SHORT_KERNEL_PARTS = 2;
  private static final int REST_US = 2_000;
  private static final int HOLD_MS = 9_000;
  private static final long SETTLE_MS = 250;
  private static final double BACK_SECONDS = 2;

  private final CheckNode node;
  private final Findings findings;
  private final boolean quick;
  private final Path library;
  private final Path tool;
  private final Path errors;
  private final Contender first;
  private final double mostSeconds;
  private final long beginNs = NanoClock.nanoTime();
  private final List<String> summary = new ArrayList<>();
  private Contender second;
  private long loops;
  private Rates alone = new Rates(0, 0);
  private Rates bare = new Rates(0, 0);

  private TurnsRows(Place place, CheckNode node, Findings findings, boolean quick, Path library)
      throws IOException {
    this.node = node;
    this.findings = findings;
    this.quick = quick;
    this.mostSeconds = quick ? 15 : 25;
    this.library = library;
    tool = library.resolveSibling("vgpu-turns");
    errors = place.work().resolve("turns.err");
    first = Contender.start(node, library, place.work().resolve("turns-1"), NvmlStep.here());
    second = Contender.start(node, library, place.work().resolve("turns-2"), NvmlStep.here());
  }

  /**
   * Runs the rows. What goes wrong with the tool is a finding, not a failure.
   *
   * @param library {@code libvgpu_rm.so}, with {@code vgpu-turns} beside it
   * @return the step's summary of them
   */
  static String run(Place place, CheckNode node, Findings findings, boolean quick, Path library)
      throws IOException, InterruptedException {
    if (place.isOverStandIn()) {
      findings.line(
          "vgpu-turns: not on this machine, because the stand-in's resource manager is a part of"
              + " each process");
      return "not on this machine";
    }
    tellMachine(findings);
    try (TurnsRows rows = new TurnsRows(place, node, findings, quick, library)) {
      try {
        rows.all();
      } catch (IllegalStateException | IOException | UncheckedIOException e) {
        findings.expect(
            String.format(
                Locale.ROOT,
                "vgpu-turns could be tried to the end (after %.1f s: %s; vgpu-turns said: %s; the"
                    + " programs said: %s)",
                rows.seconds(),
                text(e),
                TurnsTool.errors(rows.errors),
                node.errors().strip()),
            0,
            1,
            1,
            "what is missing here is not known");
      }
      findings.at("turns").put("seconds", Findings.rounded(rows.seconds(), 1));
      findings.write();
      return rows.summary.isEmpty() ? "could not be tried" : String.join(", ", rows.summary);
    }
  }

  /** What decides whether a process may take another one's files. */
  private static void tellMachine(Findings findings) {
    List<String> told = new ArrayList<>();
    for (String line : Outcome.linesOf(Path.of("/proc/self/status"))) {
      if (line.matches("(Uid|CapEff|NSpid|Seccomp|NoNewPrivs):.*")) {
        told.add(line.replaceAll("\\s+", " "));
      }
    }
    told.add("ptrace_scope " + Outcome.linesOf(Path.of("/proc/sys/kernel/yama/ptrace_scope")));
    told.add("module " + Outcome.linesOf(Path.of("/sys/module/nvidia/version")));
    findings.line("vgpu-turns here: %s", String.join(", ", told));
  }

  private static String text(Exception e) {
    return String.valueOf(e.getMessage());
  }

  private double seconds() {
    return (NanoClock.nanoTime() - beginNs) / 1e9;
  }

  private void all() throws IOException, InterruptedException {
    begin();
    measureBare();
    weigh("slices", 75, "offline", false);
    tellSlices("after SIGTERM");
    expectAsBare("after SIGTERM");
    weigh("slices and levels", 50, "online", false);
    stop();
    killWeighing();
    weigh("slices and levels", 25, "online", true);
    beginBeside();
  }

  /** Whether a row can still begin. The first ones tell most. */
  private boolean hasTime(String name, double needsSeconds) {
    boolean has = seconds() + needsSeconds <= mostSeconds;
    if (!has) {
      findings.line("vgpu-turns: no time is left of %.0f s for: %s", mostSeconds, name);
    }
    return has;
  }

  // ---- the programs

  private void begin() throws IOException, InterruptedException {
    first.awaitReady();
    second.awaitReady();
    Answer length = first.length(KERNEL_US);
    loops = length.whole("loops");
    second.loops(loops);
    findings.line(
        "vgpu-turns: kernels of %d loops, %.1f us alone%s",
        loops,
        length.number("took_ns") / 1e3,
        length.whole("fixed") != 0
            ? ""
            : "; they wait for the clock, so ratios are not those of the GPU's time");
    findings.line("vgpu-turns: the first program's records: %s", first.records().summary());
    findings.line("vgpu-turns: the second program's records: %s", second.records().summary());
    first.startReader(node);
    second.startReader(node);
    awaitReaders();
    second.go();
    NanoClock.sleepMillis(SETTLE_MS);
    double other = measure(400).second();
    second.pause();
    first.go();
    NanoClock.sleepMillis(SETTLE_MS);
    alone = new Rates(measure(400).first(), other);
    findings.line(
        "vgpu-turns: alone %.0f and %.0f kernels in a second", alone.first(), alone.second());
    findings
        .at("turns", "alone")
        .put("first_per_s", Findings.rounded(alone.first(), 1))
        .put("second_per_s", Findings.rounded(alone.second(), 1));
  }

  /** Without them only the time slices are not told. */
  private void awaitReaders() throws InterruptedException {
    for (Contender each : List.of(first, second)) {
      try {
        each.awaitReader();
        findings.line("vgpu-turns: before, us/level by group:%s", " " + each.slices());
      } catch (IllegalStateException e) {
        findings.line("vgpu-turns: the time slices cannot be read: %s", text(e));
      }
    }
  }

  private Rates measure(long ms) throws InterruptedException {
    Reading one = first.read();
    Reading two = second.read();
    NanoClock.sleepMillis(ms);
    return new Rates(first.read().rateSince(one), second.read().rateSince(two));
  }

  private long span() {
    return quick ? 700 : 2_000;
  }

  private Rates tell(String name, Rates rates) {
    double together = alone.first() == 0 ? 0 : 100 * rates.sum() / alone.first();
    findings.line(
        "vgpu-turns: %-36s %6.0f and %6.0f kernels in a second: %.2f %% and %.2f %%, together"
            + " %.1f %% of one alone",
        name, rates.first(), rates.second(), rates.percent(), 100 - rates.percent(), together);
    findings
        .at("turns", name)
        .put("first_per_s", Findings.rounded(rates.first(), 1))
        .put("second_per_s", Findings.rounded(rates.second(), 1))
        .put("first_percent", Findings.rounded(rates.percent(), 2))
        .put("together_percent_of_alone", Findings.rounded(together, 1));
    findings.write();
    return rates;
  }

  // ---- weights

  private void measureBare() throws InterruptedException {
    second.go();
    NanoClock.sleepMillis(SETTLE_MS);
    bare = tell("bare", measure(span()));
  }

  private TurnsTool start(String one, String two) {
    return TurnsTool.start(
        node, tool, errors, List.of(first.directory() + "=" + one, second.directory() + "=" + two));
  }

  private void said(String when, long sinceNs, Answer answer) {
    findings.line(
        "vgpu-turns: %s, after %.1f ms: %s",
        when, (NanoClock.nanoTime() - sinceNs) / 1e6, answer.line());
  }

  private void tellSlices(String when) throws InterruptedException {
    try {
      findings.line("vgpu-turns: %s, first: %s", when, first.slices());
      findings.line("vgpu-turns: %s, second: %s", when, second.slices());
    } catch (IllegalStateException e) {
      findings.line("vgpu-turns: %s, the time slices cannot be read: %s", when, text(e));
    }
  }

  /** Both programs run when it begins, and as before at its end. */
  private void weigh(String how, int percent, String urgency, boolean atLengths)
      throws InterruptedException {
    String name = percent + "/" + (100 - percent) + ", " + how;
    if (!hasTime(name, (atLengths ? 3 : 1) + span() / 1e3)) {
      return;
    }
    long sinceNs = NanoClock.nanoTime();
    try (TurnsTool turns = start(urgency + "," + percent, urgency + "," + (100 - percent))) {
      said(name + ", ready", sinceNs, turns.answer());
      NanoClock.sleepMillis(SETTLE_MS);
      tellSlices(name);
      expectShare(name, percent, tell(name, measure(atLengths ? span() / 2 : span())));
      if (atLengths) {
        atOtherLengths(name);
      }
      sinceNs = NanoClock.nanoTime();
      said(name + ", after SIGTERM", sinceNs, turns.terminate());
    }
  }

  private void expectShare(String name, int percent, Rates rates) {
    findings.expect(
        "vgpu-turns, " + name + ": percent of the first program",
        Findings.rounded(rates.percent(), 2),
        percent - 1,
        percent + 1,
        DIVIDES_NOT);
    summary.add(
        String.format(Locale.ROOT, "%d/%d %.1f %%", percent, 100 - percent, rates.percent()));
  }

  /** If the GPU switched only between kernels, the kernels' length would change the shares. */
  private void atOtherLengths(String name) throws InterruptedException {
    for (long other : new long[] {loops * LONG_KERNEL_TIMES, loops / SHORT_KERNEL_PARTS}) {
      first.loops(other);
      second.loops(other);
      NanoClock.sleepMillis(2 * SETTLE_MS);
      double times = (double) other / loops;
      String what = String.format(Locale.ROOT, "%s, %.1f x as long", name, times);
      tell(what, measure(span() / 4).times(times));
    }
    first.loops(loops);
    second.loops(loops);
    NanoClock.sleepMillis(SETTLE_MS);
  }

  private void expectAsBare(String when) throws InterruptedException {
    NanoClock.sleepMillis(SETTLE_MS);
    Rates rates = tell(when, measure(span() / 2));
    findings.expect(
        "vgpu-turns, " + when + ": percent of the first program's bare rate",
        Findings.rounded(100 * rates.first() / bare.first(), 1),
        95,
        105,
        GIVES_NOT_BACK);
    findings.expect(
        "vgpu-turns, " + when + ": percent of the second program's bare rate",
        Findings.rounded(100 * rates.second() / bare.second(), 1),
        95,
        105,
        GIVES_NOT_BACK);
  }

  private void killWeighing() throws InterruptedException {
    if (!hasTime("the worker's death", 2)) {
      return;
    }
    try (TurnsTool turns = start("online,75", "online,25")) {
      turns.answer();
      long sinceNs = NanoClock.nanoTime();
      turns.killWorker();
      said("kill -9 of the worker", sinceNs, turns.answer());
      turns.awaitEnd();
    }
    tellSlices("after kill -9");
    expectAsBare("after kill -9");
  }

  // ---- the stop

  /** The first program is offline and always has work; the second has single kernels. */
  private void stop() throws InterruptedException {
    if (!hasTime("the stop", quick ? 4 : 6)) {
      return;
    }
    second.pause();
    first.pause();
    second.loops(loops / SHORT_KERNEL_PARTS);
    arrive("alone");
    first.go();
    NanoClock.sleepMillis(SETTLE_MS);
    Latency without = arrive("beside the offline program, bare");
    long sinceNs = NanoClock.nanoTime();
    try (TurnsTool turns = start("offline", "online")) {
      said("classes, ready", sinceNs, turns.answer());
      tellSlices("classes");
      arrive("beside it, levels only");
      sinceNs = NanoClock.nanoTime();
      said("held", sinceNs, turns.online(HOLD_MS));
      NanoClock.sleepMillis(50);
      Reading before = first.read();
      NanoClock.sleepMillis(200);
      long meanwhile = first.read().kernels() - before.kernels();
      findings.expect(
          "vgpu-turns, held: kernels of the offline program in 200 ms",
          (double) meanwhile,
          0,
          0,
          STOPS_NOT);
      Latency held = arrive("beside it, held");
      summary.add(
          String.format(
              Locale.ROOT,
              "p99 of an online kernel %.2f ms held, %.2f bare",
              held.p99Us() / 1e3,
              without.p99Us() / 1e3));
      switchOften(turns);
      killHolding(turns);
    }
    second.loops(loops);
    second.go();
    NanoClock.sleepMillis(SETTLE_MS);
  }

  private Latency arrive(String name) throws InterruptedException {
    Latency latency = second.arrive(quick ? 80 : 250, REST_US, quick ? 700 : 1_500);
    findings.line(
        "vgpu-turns: a kernel %-34s p50 %7.1f us, p99 %7.1f, worst %7.1f of %d%s",
        name,
        latency.p50Us(),
        latency.p99Us(),
        latency.worstUs(),
        latency.kernels(),
        latency.isLate() ? "; the last one did NOT end in time" : "");
    findings
        .at("turns", "latency", name)
        .put("p50_us", Findings.rounded(latency.p50Us(), 1))
        .put("p99_us", Findings.rounded(latency.p99Us(), 1))
        .put("worst_us", Findings.rounded(latency.worstUs(), 1))
        .put("kernels", latency.kernels())
        .put("late", latency.isLate());
    findings.write();
    return latency;
  }

  /** How long it takes to stop and to give back, as a scheduler would do all the time. */
  private void switchOften(TurnsTool turns) throws InterruptedException {
    int times = quick ? 8 : 20;
    double[] stops = new double[times];
    double[] gives = new double[times];
    Answer answer = turns.online(0);
    for (int i = 0; i < times; i++) {
      NanoClock.sleepMillis(5);
      long beganNs = NanoClock.nanoTime();
      turns.online(HOLD_MS);
      stops[i] = (NanoClock.nanoTime() - beganNs) / 1e6;
      NanoClock.sleepMillis(5);
      beganNs = NanoClock.nanoTime();
      answer = turns.online(0);
      gives[i] = (NanoClock.nanoTime() - beganNs) / 1e6;
    }
    Arrays.sort(stops);
    Arrays.sort(gives);
    ObjectNode into = findings.at("turns", "switch");
    into.put("stop_p50_ms", Findings.rounded(stops[times / 2], 2));
    into.put("stop_worst_ms", Findings.rounded(stops[times - 1], 2));
    into.put("give_back_p50_ms", Findings.rounded(gives[times / 2], 2));
    into.put("give_back_worst_ms", Findings.rounded(gives[times - 1], 2));
    findings.line(
        "vgpu-turns: stop p50 %.2f ms, worst %.2f; giving back p50 %.2f, worst %.2f; of %d: %s",
        stops[times / 2],
        stops[times - 1],
        gives[times / 2],
        gives[times - 1],
        times,
        answer.line());
  }

  /** The worker dies while the offline program is stopped. */
  private void killHolding(TurnsTool turns) throws InterruptedException {
    turns.online(HOLD_MS);
    NanoClock.sleepMillis(50);
    Reading before = first.read();
    long sinceNs = NanoClock.nanoTime();
    turns.killWorker();
    boolean runs = false;
    while (!runs && (NanoClock.nanoTime() - sinceNs) / 1e9 < BACK_SECONDS) {
      NanoClock.sleepMillis(1);
      runs = first.read().kernels() > before.kernels();
    }
    double ms = (NanoClock.nanoTime() - sinceNs) / 1e6;
    findings.expect(
        String.format(
            Locale.ROOT,
            "vgpu-turns, held, kill -9 of the worker: the offline program runs after %.1f ms",
            ms),
        runs ? 1 : 0,
        1,
        1,
        "a stopped program stays stopped when vgpu-turns dies");
    said("held, kill -9 of the worker", sinceNs, turns.answer());
    NanoClock.sleepMillis(SETTLE_MS);
    Rates after = measure(span() / 4);
    findings.expect(
        "vgpu-turns, held, after kill -9: percent of the first program's rate alone",
        Findings.rounded(100 * after.first() / alone.first(), 1),
        95,
        105,
        GIVES_NOT_BACK);
  }

  /**
   * A program that begins while vgpu-turns runs: CUDA sets time slices of its own at its start.
   * This row is the last, because it replaces the second program.
   */
  private void beginBeside() throws IOException, InterruptedException {
    if (!hasTime("a program that begins under it", 4)) {
      return;
    }
    try (TurnsTool turns = start("online,75", "online,25")) {
      turns.answer();
      second.close();
      second = Contender.start(node, library, second.directory(), NvmlStep.here());
      second.awaitReady();
      second.loops(loops);
      second.go();
      NanoClock.sleepMillis(SETTLE_MS);
      String name = "75/25, the second began under it";
      expectShare(name, 75, tell(name, measure(span() / 2)));
      findings.line("vgpu-turns: its records: %s", second.records().summary());
      second.startReader(node);
      second.awaitReader();
      tellSlices(name);
    }
  }

  @Override
  public void close() {
    first.close();
    second.close();
  }
}
