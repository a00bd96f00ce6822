package dev.vgpu.samples.inference;

import static org.assertj.core.api.Assertions.assertThat;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
import java.util.List;
import java.util.stream.IntStream;
import org.junit.jupiter.api.Test;

final class TokenBatchTest {
  private static long[] row(int length) {
    long[] row = new long[length];
    Arrays.fill(row, 7);
    return row;
  }

  @Test
  void shorterTextsArePaddedAndMasked() {
    TokenRun run = new TokenRun(new int[] {2, 0}, List.of(new long[] {4}, row(9), row(3)));

    assertThat(run.count()).isEqualTo(2);
    assertThat(run.length()).isEqualTo(3);
    assertThat(run.text(0)).isEqualTo(2);
    assertThat(run.ids()).containsExactly(7, 7, 7, 4, 0, 0);
    assertThat(run.mask()).containsExactly(1, 1, 1, 1, 0, 0);
  }

  @Test
  void aCallNeverHasMoreTokensThanTheBound() {
    List<long[]> rows = List.of(row(10), row(512), row(512), row(512), row(512), row(9), row(8));

    List<TokenBatch> batches = TokenBatch.split(rows);

    assertThat(batches).extracting(TokenBatch::count).containsExactly(4, 3);
    assertThat(TokenBatch.split(List.of())).isEmpty();
  }

  @Test
  void anOfflineBatchOfUsualSentencesIsOneCall() {
    assertThat(TokenBatch.split(Collections.nCopies(OfflineCorpus.BATCH, row(64)))).hasSize(1);
  }

  @Test
  void eachTextIsInOneRunWithOthersOfItsLength() {
    List<long[]> rows =
        List.of(row(9), row(300), row(2), row(200), row(3), row(250), row(8), row(1));

    List<TokenRun> runs = TokenBatch.split(rows).get(0).runs();

    List<Integer> texts = new ArrayList<>();
    for (TokenRun run : runs) {
      IntStream.range(0, run.count()).forEach(i -> texts.add(run.text(i)));
    }
    assertThat(texts).containsExactly(7, 2, 4, 6, 0, 3, 5, 1);
    assertThat(runs).extracting(TokenRun::count).containsExactly(4, 2, 1, 1);
  }

  /**
   * The measured peaks, in MiB, are the source of the numbers in the Javadoc of
   * TokenRun.peakMemory.
   */
  @Test
  void theBudgetIsAboveTheMeasuredPeakAndNotFarAbove() {
    assertBudget(1, 512, 24.84);
    assertBudget(8, 512, 199.30);
    assertBudget(8, 256, 52.71);
    assertBudget(8, 128, 19.43);
    assertBudget(32, 32, 19.34);
    assertBudget(32, 48, 29.14);
  }

  private static void assertBudget(int count, int length, double measuredMib) {
    int[] texts = IntStream.range(0, count).toArray();
    TokenRun run = new TokenRun(texts, Collections.nCopies(count, row(length)));
    assertThat(run.peakMemory().bytes() / (double) (1 << 20))
        .isBetween(measuredMib, measuredMib * 1.25);
  }
}
