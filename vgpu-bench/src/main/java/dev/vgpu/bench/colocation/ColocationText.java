package dev.vgpu.bench.colocation;

import static java.util.Objects.requireNonNull;

import java.util.List;
import java.util.Locale;
import java.util.Map;

/** The figures for people. */
final class ColocationText {
  /** The headings of the columns. */
  static final String HEADLINE =
      String.format(
          Locale.ROOT,
          "%-24s%9s%9s%9s%9s%8s%8s%9s%9s%8s%8s%7s%7s%7s%n",
          "",
          "requests",
          "p50 ms",
          "p99 ms",
          "p99.9",
          "p50 x",
          "p99 x",
          "+p99 ms",
          "offline",
          "idle ms",
          "sw/s",
          "seat%",
          "hooks%",
          "other%");

  private final List<Colocation.Load> loads;
  private final int[] trainers;
  private final StringBuilder text = new StringBuilder();

  ColocationText(List<Colocation.Load> loads, int[] trainers) {
    this.loads = loads;
    this.trainers = trainers;
  }

  String text(ColocationOptions options, Map<String, String> replayed) {
    line(
        "online: Azure LLM inference trace 2023 (%s), %s%n",
        options.trace().word(), options.trace().model());
    line(
        "offline: kernels of %.1f to %.1f ms without end%n",
        options.kernels().leastNs() / 1e6, options.kernels().mostNs() / 1e6);
    for (Colocation.Load load : loads) {
      Outcome alone = load.of(Mode.ALONE, 0);
      line(
          "%nload %d %%: %s%n",
          load.percent(), requireNonNull(replayed.get(Integer.toString(load.percent()))));
      text.append(HEADLINE);
      text.append(row("alone", alone, alone));
      text.append(row("alone, again", load.aloneAgain(), alone));
      for (int count : trainers) {
        for (Mode mode : List.of(Mode.UNCONTROLLED, Mode.OURS, Mode.STRICT)) {
          text.append(row(mode.word() + ", " + count + " offline", load.of(mode, count), alone));
        }
      }
      line(
          "  target of ours: p99 <= %.2f ms, offline >= 0.95 of the ideal (at 20 %%); %.0f s%n",
          ColocationFigures.targetMs(alone, options.kernels()), load.s());
    }
    line(
        "x: against alone. +p99: of what each request took longer than the same one alone.%n"
            + "offline: of the time that online work left. idle: of the GPU, for each request.%n"
            + "sw: turns that the seat gave. seat, hooks, other: %% of one core.%n");
    return text.toString();
  }

  /** {@return a line of the table} */
  static String row(String name, Outcome outcome, Outcome alone) {
    String row =
        String.format(
            Locale.ROOT,
            "  %-22s%9d%9.2f%9.2f%9.2f%8.3f%8.3f%9.2f%9.3f%8.2f%8.0f%7.2f%7.2f%7.0f%n",
            name,
            outcome.requests(),
            outcome.percentileMs(50),
            outcome.percentileMs(99),
            outcome.percentileMs(99.9),
            outcome.percentileMs(50) / alone.percentileMs(50),
            outcome.percentileMs(99) / alone.percentileMs(99),
            outcome.addedMs(alone, 99),
            outcome.offlineOfIdeal(),
            outcome.lostMs(),
            outcome.switchesPerS(),
            outcome.seatPercent(),
            outcome.monitorsPercent(),
            outcome.othersPercent());
    return outcome.unfinished() == 0
        ? row
        : row
            + String.format(
                Locale.ROOT,
                "    %d of them were not served in time, and count as served then%n",
                outcome.unfinished());
  }

  private void line(String format, Object... values) {
    text.append(String.format(Locale.ROOT, format, values));
  }
}
