package dev.vgpu.bench.colocation;

import static java.util.Objects.requireNonNull;

import dev.vgpu.bench.harness.Child;
import dev.vgpu.bench.harness.NanoClock;
import dev.vgpu.bench.harness.ProcessorTime;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.function.Consumer;

/**
 * A storm of short online requests beside training loops: what many switches cost, in GPU time and
 * in processor time. Also the opposite: what an idle seat costs.
 */
public final class Storm {
  private static final int PER_SECOND = 1_000;
  private static final long SERVICE_NS = 200_000;
  private static final long GRACE_NS = 1_000_000_000;
  private static final int IDLE_PROGRAMS = 4;

  private final boolean quick;
  private final Consumer<String> progress;
  private final Map<Colocation.Cell, Outcome> outcomes = new LinkedHashMap<>();
  private final Map<String, Double> idlePercent = new LinkedHashMap<>();

  /**
   * Prepares the benchmark.
   *
   * @param quick a tenth of the time
   * @param progress receives the name of each part that begins
   */
  public Storm(boolean quick, Consumer<String> progress) {
    this.quick = quick;
    this.progress = progress;
  }

  /**
   * Runs the benchmark.
   *
   * @throws InterruptedException if this thread is interrupted
   */
  public void run() throws InterruptedException {
    Arrivals all =
        Arrivals.random(SERVICE_NS, PER_SECOND, quick ? 2_000_000_000L : 16_000_000_000L);
    int parts = quick ? 1 : 2;
    Colocation.cells().forEach(cell -> outcomes.put(cell, new Outcome()));
    for (int part = 0; part < parts; part++) {
      // One after the other, since a GPU has one pool.
      try (Bed bed = Bed.open(Colocation.MOST_TRAINERS, "strict")) {
        replay(bed, true, all.part(part, parts));
      }
      try (Bed bed = Bed.open(Colocation.MOST_TRAINERS)) {
        replay(bed, false, all.part(part, parts));
        if (part == parts - 1) {
          idle(bed);
        }
      }
    }
  }

  private void replay(Bed bed, boolean strict, Arrivals arrivals) throws InterruptedException {
    for (Colocation.Cell cell : Colocation.cells()) {
      if ((cell.mode() == Mode.STRICT) == strict) {
        progress.accept("storm, " + cell.mode().word() + ", " + cell.trainers() + " offline");
        new Replay(bed, cell.mode(), GRACE_NS)
            .run(arrivals, cell.trainers(), Kernels.SHORT, requireNonNull(outcomes.get(cell)));
      }
    }
  }

  private void idle(Bed bed) throws InterruptedException {
    progress.accept("a seat at rest");
    NanoClock.sleepMillis(2_000);
    idlePercent.put("no_program", seatPercent(bed));
    List<Child> programs = new ArrayList<>();
    for (int i = 0; i < IDLE_PROGRAMS; i++) {
      Map<String, String> place = i == 0 ? bed.online(false) : bed.offline(i - 1, false);
      programs.add(bed.node().start(place, "load", "200000", "1", "1", "start").awaitReady());
    }
    NanoClock.sleepMillis(300);
    for (Child program : programs) {
      program.ask("pause");
    }
    NanoClock.sleepMillis(2_000);
    idlePercent.put("programs_at_rest", seatPercent(bed));
    programs.forEach(Child::close);
  }

  private double seatPercent(Bed bed) throws InterruptedException {
    long seat = bed.pool().child().pid();
    long before = ProcessorTime.ofLiveThreadsNs(seat);
    long fromNs = NanoClock.nanoTime();
    NanoClock.sleepMillis(quick ? 2_000 : 10_000);
    long after = ProcessorTime.ofLiveThreadsNs(seat);
    return 100.0 * (after - before) / (NanoClock.nanoTime() - fromNs);
  }

  /** {@return the figures for programs} */
  public Map<String, Object> figures() {
    Outcome alone = alone();
    Map<String, Object> modes = new LinkedHashMap<>();
    outcomes.forEach(
        (cell, outcome) ->
            modes.put(
                cell.mode().word() + "_" + cell.trainers(),
                ColocationFigures.figures(outcome, alone)));
    Map<String, Object> all = new LinkedHashMap<>();
    all.put("storm", modes);
    all.put("storm_arrivals_per_s", PER_SECOND);
    all.put("storm_request_ms", SERVICE_NS / 1e6);
    idlePercent.forEach((key, value) -> all.put("seat_idle_" + key + "_cpu_percent", value));
    return all;
  }

  private Outcome alone() {
    return outcomes.entrySet().stream()
        .filter(entry -> entry.getKey().mode() == Mode.ALONE)
        .findFirst()
        .orElseThrow()
        .getValue();
  }

  /** {@return the figures for people} */
  public String text() {
    StringBuilder text = new StringBuilder();
    text.append(
        String.format(
            Locale.ROOT,
            "%d requests of %.1f ms a second, beside kernels of 0.1 to 0.5 ms%n",
            PER_SECOND,
            SERVICE_NS / 1e6));
    text.append(ColocationText.HEADLINE);
    outcomes.forEach(
        (cell, outcome) ->
            text.append(
                ColocationText.row(
                    cell.mode().word() + ", " + cell.trainers() + " offline", outcome, alone())));
    idlePercent.forEach(
        (key, value) ->
            text.append(
                String.format(
                    Locale.ROOT,
                    "  the seat at rest, %s: %.2f %% of a core (target: 0.5)%n",
                    key.replace('_', ' '),
                    value)));
    return text.toString();
  }
}
