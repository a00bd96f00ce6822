package dev.vgpu.bench.chaos;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import org.junit.jupiter.api.Test;

class StallsTest {
  private static final String STALL =
      "WARNING: a GPU was stalled and has recovered: gpu=GPU-1 id=a-1 its work was not reported\n";

  private final Stalls stalls = new Stalls();

  @Test
  void aStallOfASeatThatRanInTimeIsAFailure() {
    stalls.look("INFO: all is well\n", 0);
    assertThatThrownBy(() -> stalls.look("INFO: all is well\n" + STALL, 49))
        .isInstanceOf(ChaosFailure.class)
        .hasMessageContaining("a-1 its work was not reported");
  }

  @Test
  void aStallOfALateSeatIsCountedAndQuoted() {
    stalls.look(STALL + STALL, 50);
    assertThat(stalls.excused()).startsWith("2, last: ").contains("id=a-1");
  }

  @Test
  void eachLineCountsOnceAndOnlyOnceItIsComplete() {
    int half = STALL.length() / 2;
    stalls.look(STALL + STALL.substring(0, half), 400);
    assertThat(stalls.excused()).startsWith("1, ");
    assertThatThrownBy(() -> stalls.look(STALL + STALL, 0)).isInstanceOf(ChaosFailure.class);
  }

  @Test
  void withoutStallsNothingIsQuoted() {
    stalls.look("", 0);
    assertThat(stalls.excused()).isEqualTo("0");
  }
}
