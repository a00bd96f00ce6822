package dev.vgpu.bench.colocation;

import static java.util.Objects.requireNonNull;

import dev.vgpu.bench.harness.NanoClock;
import java.time.LocalDateTime;
import java.time.format.DateTimeFormatter;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.function.Consumer;

/**
 * Inference requests, as they arrived at a service of Azure, beside training loops: alone, without
 * vgpu, with vgpu, and with vgpu in strict turns. All modes replay the same requests. A replay is
 * cut into parts, and the modes alternate part by part, so that the machine's noise affects them
 * alike.
 */
public final class Colocation {
  private static final long PART_NS = 9_000_000_000L;
  private static final long QUICK_PART_NS = 2_000_000_000L;
  private static final long GRACE_NS = 1_500_000_000L;
  private static final int PARTS = 2;

  /** The largest number of offline programs. */
  static final int MOST_TRAINERS = 3;

  private static final int[] TRAINERS = {1, MOST_TRAINERS};

  private final ColocationOptions options;
  private final Consumer<String> progress;
  private final List<Load> loads = new ArrayList<>();

  /** The outcomes at one load. */
  record Load(
      int percent, Arrivals arrivals, Map<Cell, Outcome> outcomes, Outcome aloneAgain, double s) {
    Outcome of(Mode mode, int trainers) {
      return requireNonNull(outcomes.get(new Cell(mode, mode == Mode.ALONE ? 0 : trainers)));
    }
  }

  /** A mode and a number of offline programs. */
  record Cell(Mode mode, int trainers) {}

  /**
   * Prepares the benchmark.
   *
   * @param options what to run
   * @param progress receives the name of each part that begins
   */
  public Colocation(ColocationOptions options, Consumer<String> progress) {
    this.options = options;
    this.progress = progress;
  }

  /**
   * Runs the benchmark.
   *
   * @throws InterruptedException if this thread is interrupted
   */
  public void run() throws InterruptedException {
    List<Request> trace = options.trace().requests();
    for (int percent : options.loads()) {
      int parts = options.quick() ? 1 : PARTS;
      long lengthNs = parts * (options.quick() ? QUICK_PART_NS : PART_NS);
      Arrivals arrivals = Arrivals.of(trace, percent / 100.0, lengthNs);
      loads.add(load(percent, arrivals, parts));
    }
  }

  private Load load(int percent, Arrivals arrivals, int parts) throws InterruptedException {
    long beginNs = NanoClock.nanoTime();
    Map<Cell, Outcome> outcomes = new LinkedHashMap<>();
    cells().forEach(cell -> outcomes.put(cell, new Outcome()));
    Outcome aloneAgain = new Outcome();
    for (int part = 0; part < parts; part++) {
      Arrivals now = arrivals.part(part, parts);
      String where =
          String.format(
              Locale.ROOT, "colocation, load %d %%, part %d of %d", percent, part + 1, parts);
      // One after the other, since a GPU has one pool.
      for (boolean strict : part % 2 == 0 ? List.of(false, true) : List.of(true, false)) {
        try (Bed bed = strict ? Bed.open(MOST_TRAINERS, "strict") : Bed.open(MOST_TRAINERS)) {
          replay(bed, strict, part, now, where, outcomes);
          if (!strict) {
            new Replay(bed, Mode.ALONE, GRACE_NS).run(now, 0, options.kernels(), aloneAgain);
          }
        }
      }
    }
    double s = (NanoClock.nanoTime() - beginNs) / 1e9;
    return new Load(percent, arrivals, outcomes, aloneAgain, s);
  }

  /** Replays one part in all modes of a bed, in an order that changes with the part. */
  private void replay(
      Bed bed,
      boolean strict,
      int part,
      Arrivals arrivals,
      String where,
      Map<Cell, Outcome> outcomes)
      throws InterruptedException {
    List<Cell> cells =
        cells().stream().filter(cell -> (cell.mode == Mode.STRICT) == strict).toList();
    for (int i = 0; i < cells.size(); i++) {
      Cell cell = cells.get((i + part) % cells.size());
      progress.accept(
          String.format(Locale.ROOT, "%s: %s, %d offline", where, cell.mode.word(), cell.trainers));
      new Replay(bed, cell.mode, GRACE_NS)
          .run(arrivals, cell.trainers, options.kernels(), requireNonNull(outcomes.get(cell)));
    }
  }

  /** {@return all combinations to measure at one load; alone comes first} */
  static List<Cell> cells() {
    List<Cell> cells = new ArrayList<>(List.of(new Cell(Mode.ALONE, 0)));
    for (int trainers : TRAINERS) {
      for (Mode mode : List.of(Mode.UNCONTROLLED, Mode.OURS, Mode.STRICT)) {
        cells.add(new Cell(mode, trainers));
      }
    }
    return cells;
  }

  /** {@return the figures for programs} */
  public Map<String, Object> figures() {
    return new ColocationFigures(loads, TRAINERS, replayed()).json(options);
  }

  /** {@return the figures for people} */
  public String text() {
    return new ColocationText(loads, TRAINERS).text(options, replayed());
  }

  /** The replayed part of the trace, by load. */
  private Map<String, String> replayed() {
    Map<String, String> replayed = new LinkedHashMap<>();
    LocalDateTime start = options.trace().start();
    List<Request> trace = options.trace().requests();
    for (Load load : loads) {
      int count = load.arrivals().requests().size();
      long traceNs = Arrivals.spanNs(trace, count);
      replayed.put(
          Integer.toString(load.percent()),
          String.format(
              Locale.ROOT,
              "%d requests, the trace's %.1f s from %s on%s, in %.1f s: %.1f times as fast as they came",
              count,
              traceNs / 1e9,
              start.format(DateTimeFormatter.ofPattern("uuuu-MM-dd HH:mm:ss", Locale.ROOT)),
              count > trace.size() ? ", begun anew at its end" : "",
              load.arrivals().lengthNs() / 1e9,
              traceNs / (double) load.arrivals().lengthNs()));
    }
    return replayed;
  }
}
