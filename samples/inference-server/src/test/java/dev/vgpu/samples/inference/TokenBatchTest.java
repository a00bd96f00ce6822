package dev.vgpu.samples.inference;

import static org.assertj.core.api.Assertions.assertThat;

import java.util.Arrays;
import java.util.Collections;
import java.util.List;
import org.junit.jupiter.api.Test;

final class TokenBatchTest {
  private static long[] row(int length) {
    long[] row = new long[length];
    Arrays.fill(row, 7);
    return row;
  }

  @Test
  void shorterTextsArePaddedAndMasked() {
    TokenBatch batch = TokenBatch.split(List.of(new long[] {1, 2, 3}, new long[] {4})).get(0);

    assertThat(batch.count()).isEqualTo(2);
    assertThat(batch.length()).isEqualTo(3);
    assertThat(batch.ids()).containsExactly(1, 2, 3, 4, 0, 0);
    assertThat(batch.mask()).containsExactly(1, 1, 1, 1, 0, 0);
  }

  @Test
  void aCallNeverHasMoreTokensThanTheBound() {
    List<long[]> rows = List.of(row(10), row(512), row(512), row(512), row(512), row(9), row(8));

    List<TokenBatch> batches = TokenBatch.split(rows);

    assertThat(batches.stream().mapToInt(TokenBatch::count).sum()).isEqualTo(rows.size());
    assertThat(batches).allMatch(b -> b.count() * b.length() <= TokenBatch.MAX_TOKENS);
    assertThat(batches).extracting(TokenBatch::count).containsExactly(4, 3);
  }

  @Test
  void anOfflineBatchOfUsualSentencesIsOneCall() {
    assertThat(TokenBatch.split(Collections.nCopies(OfflineCorpus.BATCH, row(64)))).hasSize(1);
  }

  /** The measured peaks, in MiB, are those of TokenBatch.peakMemory's Javadoc. */
  @Test
  void theBudgetIsAboveTheMeasuredPeakAndNotFarAbove() {
    assertBudget(1, 512, 24.84);
    assertBudget(4, 512, 99.65);
    assertBudget(8, 256, 52.71);
    assertBudget(8, 128, 19.43);
    assertBudget(32, 32, 19.34);
    assertBudget(32, 48, 29.14);
  }

  private static void assertBudget(int count, int length, double measuredMib) {
    TokenBatch batch = TokenBatch.split(Collections.nCopies(count, row(length))).get(0);
    assertThat(batch.count()).isEqualTo(count);
    double budgetMib = batch.peakMemory().bytes() / (double) (1 << 20);
    assertThat(budgetMib).isBetween(measuredMib, measuredMib * 1.25);
  }
}
