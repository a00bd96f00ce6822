package dev.vgpu.bench.chaos;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.util.List;
import org.junit.jupiter.api.Test;

class ChaosOptionsTest {
  @Test
  void runsHaveSeedsOfTheirOwnThatTheFirstOneRepeats() {
    List<String> arguments = List.of("--seed", "7", "--runs", "20");
    List<ChaosOptions> runs = ChaosOptions.parse(arguments).each();
    assertThat(runs).hasSize(20).doesNotHaveDuplicates();
    assertThat(runs.get(0).seed()).isEqualTo(7);
    assertThat(ChaosOptions.parse(arguments).each()).isEqualTo(runs);
  }

  @Test
  void runsThatMakeNoSenseAreRefused() {
    assertThatThrownBy(() -> ChaosOptions.parse(List.of("--runs", "0")))
        .hasMessageContaining("--runs must be more than 0");
    assertThatThrownBy(() -> ChaosOptions.parse(List.of("--runs")))
        .hasMessageContaining("--runs needs a value");
  }
}
