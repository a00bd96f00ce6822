package dev.vgpu.samples.inference;

import dev.vgpu.MemorySize;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;

/**
 * Texts as the model reads them: one row of token numbers each, padded to the longest. Immutable.
 */
final class TokenBatch {
  /**
   * The most tokens of one call, padding included. A turn is passed on between calls, so a call
   * that takes a second makes everybody else wait a second; this many take about 150 ms on two
   * cores.
   */
  static final int MAX_TOKENS = 2_048;

  private final long[] ids;
  private final long[] mask;
  private final int count;
  private final int length;

  private TokenBatch(List<long[]> rows) {
    count = rows.size();
    length = rows.stream().mapToInt(row -> row.length).max().orElseThrow();
    ids = new long[count * length]; // 0 is [PAD]
    mask = new long[count * length];
    for (int i = 0; i < count; i++) {
      long[] row = rows.get(i);
      System.arraycopy(row, 0, ids, i * length, row.length);
      Arrays.fill(mask, i * length, i * length + row.length, 1);
    }
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
    int longest = 0;
    for (int i = 0; i < rows.size(); i++) {
      longest = Math.max(longest, rows.get(i).length);
      if (i > from && longest * (i - from + 1) > MAX_TOKENS) {
        batches.add(new TokenBatch(rows.subList(from, i)));
        from = i;
        longest = rows.get(i).length;
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

  /** {@return the tokens of the longest text} */
  int length() {
    return length;
  }

  /** {@return the token numbers, row by row} */
  long[] ids() {
    return ids;
  }

  /** {@return 1 for a token, 0 for padding, row by row} */
  long[] mask() {
    return mask;
  }

  /**
   * {@return the memory that a call with this batch needs at its peak, beside the weights}
   *
   * <p>This is the number that keeps a burst of requests from running out of memory, so it is worth
   * measuring for a model of your own: run some shapes, read the allocator's peak (on a CPU the
   * process's VmHWM, with the arena off), and look for what grows with the length and what with its
   * square. For this model, per token of the padded batch:
   *
   * <ul>
   *   <li>the feed-forward block: 1,536 values, as 4-byte input, accumulator and output and 1-byte
   *       quantised input at once: 19,968 bytes;
   *   <li>attention: 12 heads, a row of 4-byte scores as long as the text, before and after the
   *       softmax: 96 bytes times the length, and two rows of 384 values.
   * </ul>
   *
   * The larger one counts, as they are not alive together: measured 19,936 bytes at 32 texts of 128
   * tokens (the first), 26,470 at 256 and 51,021 at 512 (the second). Add a tenth for what the
   * arena rounds up.
   */
  MemorySize peakMemory() {
    long perToken = Math.max(19_968, 96L * length + 3_072);
    return MemorySize.ofBytes(perToken * count * length * 11 / 10);
  }
}
