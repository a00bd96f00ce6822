package dev.vgpu.samples.inference;

import dev.vgpu.MemorySize;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Comparator;
import java.util.List;
import java.util.stream.IntStream;

/**
 * Texts that are embedded together, in the runs that they take. Immutable.
 *
 * <p>Not one run for all: a cancelled call loses the run that it was in and no more, the padding is
 * less when texts of like length are together, and so is the memory. Longer runs use the device a
 * little better, up to a point: 32 sentences took 47 ms in runs of 2, 41 in runs of 4, 35 in runs
 * of 12, and 46 in one, on two cores.
 */
final class TokenBatch {
  /**
   * The most tokens of a batch. The turn is passed on between calls, so one that takes a second
   * makes everybody else of its class wait a second; this many take about 100 ms on two cores.
   */
  static final int MAX_TOKENS = 2_048;

  private static final int RUN_TEXTS = 4;
  private static final int RUN_TOKENS = 512;

  private final int count;
  private final List<TokenRun> runs;

  private TokenBatch(List<long[]> rows) {
    count = rows.size();
    int[] byLength =
        IntStream.range(0, count)
            .boxed()
            .sorted(Comparator.comparingInt(i -> rows.get(i).length))
            .mapToInt(i -> i)
            .toArray();
    List<TokenRun> made = new ArrayList<>();
    int from = 0;
    for (int to = 1; to <= count; to++) {
      // Each row is at least as long as the ones before: the next one would decide the padding.
      boolean full =
          to == count
              || to - from == RUN_TEXTS
              || rows.get(byLength[to]).length * (to - from + 1) > RUN_TOKENS;
      if (full) {
        made.add(new TokenRun(Arrays.copyOfRange(byLength, from, to), rows));
        from = to;
      }
    }
    runs = List.copyOf(made);
  }

  /**
   * Makes as few batches as {@link #MAX_TOKENS} allows, in the order of the texts.
   *
   * @param rows the tokens of each text
   * @return the batches
   */
  static List<TokenBatch> split(List<long[]> rows) {
    List<TokenBatch> batches = new ArrayList<>();
    int from = 0;
    int tokens = 0;
    for (int to = 0; to < rows.size(); to++) {
      tokens += rows.get(to).length;
      if (tokens > MAX_TOKENS && to > from) {
        batches.add(new TokenBatch(rows.subList(from, to)));
        from = to;
        tokens = rows.get(to).length;
      }
    }
    if (from < rows.size()) {
      batches.add(new TokenBatch(rows.subList(from, rows.size())));
    }
    return batches;
  }

  /** {@return how many texts these are} */
  int count() {
    return count;
  }

  /** {@return the runs, the shortest texts first} */
  List<TokenRun> runs() {
    return runs;
  }

  /** {@return the memory that a call of all the runs needs at its peak: that of the largest} */
  MemorySize peakMemory() {
    return runs.stream().map(TokenRun::peakMemory).max(Comparator.naturalOrder()).orElseThrow();
  }
}
