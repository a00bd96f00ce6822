package dev.vgpu.bench.chaos;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.vgpu.bench.harness.Arguments;
import java.util.List;
import org.junit.jupiter.api.Test;

class ChaosOptionsTest {
  private static ChaosOptions parse(String... arguments) {
    return Arguments.parse(new ChaosOptions(), List.of(arguments));
  }

  @Test
  void runsHaveSeedsOfTheirOwnThatTheFirstOneRepeats() {
    List<Long> seeds = parse("--seed", "7", "--runs", "20").seeds();
    assertThat(seeds).hasSize(20).doesNotHaveDuplicates().startsWith(7L);
    assertThat(parse("--seed", "7", "--runs", "20").seeds()).isEqualTo(seeds);
  }

  @Test
  void runsThatMakeNoSenseAreRefused() {
    assertThatThrownBy(() -> parse("--runs", "0"))
        .hasMessageContaining("--runs must be at least 1");
    assertThatThrownBy(() -> parse("--runs")).hasMessageContaining("parameter for option '--runs'");
  }

  @Test
  void aRunOfHardlyAnyStepsShowsNothing() {
    ChaosOptions options = parse();
    assertThat(options.isTooShort(0)).isTrue();
    assertThat(options.isTooShort(9)).isTrue();
    assertThat(options.isTooShort(10)).isFalse();
    assertThat(parse("--steps", "3").isTooShort(3)).isFalse();
    assertThat(parse("--least-steps", "0").isTooShort(0)).isFalse();
  }
}
