package dev.vgpu.cli.process;

import static org.assertj.core.api.Assertions.assertThat;

import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

class SignalForwarderTest {
  @ParameterizedTest
  @CsvSource({
    "42 (java) S 1 42 40 34816 42 0, true",
    "42 (a) b) S 1 42 40 34816 42 0, true",
    "42 (java) S 1 42 40 34816 43 0, false",
    "42 (java) S 1 42 40 0 -1 0, false",
    "42 (java) S 1, false"
  })
  void terminalSendsToItsForegroundOnly(String stat, boolean isInForeground) {
    assertThat(SignalForwarder.isInForeground(stat)).isEqualTo(isInForeground);
  }
}
