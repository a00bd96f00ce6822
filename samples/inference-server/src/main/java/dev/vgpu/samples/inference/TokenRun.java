package dev.vgpu.samples.inference;

import dev.vgpu.MemorySize;
import java.util.Arrays;
import java.util.List;

/**
 * What one run of the model reads: texts of about the same length, one row of token numbers each,
 * padded to the longest. Immutable.
 */
final class TokenRun {
  private final int[] texts;
  private final int length;
  private final long[] ids;
  private final long[] mask;

  /**
   * Pads the rows.
   *
   * @param texts which rows these are, among those of the batch
   * @param rows the tokens of each text of the batch
   */
  TokenRun(int[] texts, List<long[]> rows) {
    this.texts = texts;
    length = Arrays.stream(texts).map(text -> rows.get(text).length).max().orElseThrow();
    ids = new long[texts.length * length]; // 0 is [PAD]
    mask = new long[texts.length * length];
    for (int i = 0; i < texts.length; i++) {
      long[] row = rows.get(texts[i]);
      System.arraycopy(row, 0, ids, i * length, row.length);
      Arrays.fill(mask, i * length, i * length + row.length, 1);
    }
  }

  /** {@return how many texts these are} */
  int count() {
    return texts.length;
  }

  /** {@return which text of the batch a row is} */
  int text(int row) {
    return texts[row];
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
   * {@return the memory that the run needs at its peak, beside the weights}
   *
   * <p>This number keeps a burst of requests from running out of memory, so it is worth measuring
   * for a model of your own: run some shapes, read the allocator's peak (on a CPU the process's
   * VmHWM, with the arena off), and look for what grows with the length and what with its square.
   * For this model, per token of the padded run, the larger of these, as they are not alive
   * together:
   *
   * <ul>
   *   <li>the feed-forward block: 1,536 values, as 4-byte input, accumulator and output and as
   *       1-byte quantised input: 19,968 bytes (measured: 19,936 with 32 texts of 128 tokens);
   *   <li>attention: 12 heads, a row of 4-byte scores as long as the text, before and after the
   *       softmax, and two rows of 384 values: 96 bytes times the length, plus 3,072 (measured:
   *       26,470 with texts of 256 tokens, 51,021 with 512).
   * </ul>
   *
   * A tenth more is for what the arena rounds up.
   */
  MemorySize peakMemory() {
    long perToken = Math.max(19_968, 96L * length + 3_072);
    return MemorySize.ofBytes(perToken * ids.length * 11 / 10);
  }
}
