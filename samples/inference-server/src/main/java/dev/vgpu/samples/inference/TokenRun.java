package dev.vgpu.samples.inference;

import dev.vgpu.request.MemorySize;
import java.util.Arrays;
import java.util.List;

/**
 * The input of one run of the model: texts of similar length, one row of token numbers each, padded
 * to the longest. Immutable.
 */
final class TokenRun {
  private final int[] texts;
  private final int length;
  private final long[] ids;
  private final long[] mask;

  /**
   * Pads the rows.
   *
   * @param texts the indices of these rows in the batch
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

  /** {@return the number of texts} */
  int count() {
    return texts.length;
  }

  /** {@return the index in the batch of a row's text} */
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
   * {@return the run's peak memory, without the weights}
   *
   * <p>This number keeps a burst of requests from running out of memory, so measure it for your own
   * model: run some shapes, read the allocator's peak (on a CPU the process's VmHWM, with the arena
   * off), and find which terms grow with the length and which with its square. For this model, each
   * token of the padded run takes the larger of these, because they are not live at the same time:
   *
   * <ul>
   *   <li>the feed-forward block: 1,536 values, as 4-byte input, accumulator and output and as
   *       1-byte quantised input: 19,968 bytes (measured: 19,936 with 32 texts of 128 tokens);
   *   <li>attention: 12 heads, a row of 4-byte scores as long as the text, before and after the
   *       softmax, and two rows of 384 values: 96 bytes times the length, plus 3,072 (measured:
   *       26,470 with texts of 256 tokens, 51,021 with 512).
   * </ul>
   *
   * A tenth is added for the arena's rounding.
   */
  MemorySize peakMemory() {
    long perToken = Math.max(19_968, 96L * length + 3_072);
    return MemorySize.ofBytes(perToken * ids.length * 11 / 10);
  }
}
