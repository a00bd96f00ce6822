package dev.vgpu.cli.process;

import static org.assertj.core.api.Assertions.assertThat;

import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

class SignalForwarderTest {
  private static final String WITH_TERMINAL = "42 (java) S 1 42 40 34816 42 0";
  private static final String WITHOUT = "42 (java) S 1 42 40 0 -1 0";

  @ParameterizedTest
  @CsvSource({
    "42 (java) S 1 42 40 34816 42 0, true",
    "42 (a) b) S 1 42 40 34816 42 0, true",
    "42 (java) S 1 42 40 34816 43 0, false",
    "42 (java) S 1 42 40 0 -1 0, false",
    "42 (java) S 1, false"
  })
  void terminalSendsToItsForegroundOnly(String stat, boolean isInForeground) {
    assertThat(SignalForwarder.isOfGroup(EndSignal.INT, stat, stat)).isEqualTo(isInForeground);
    assertThat(SignalForwarder.isOfGroup(EndSignal.TERM, stat, stat)).isFalse();
  }

  @Test
  void whenTheTerminalGoesAwayTheShellTellsTheWholeGroup() {
    assertThat(SignalForwarder.isOfGroup(EndSignal.HUP, WITH_TERMINAL, WITHOUT)).isTrue();
    // The terminal is still there, or there never was one: somebody told this process alone.
    assertThat(SignalForwarder.isOfGroup(EndSignal.HUP, WITH_TERMINAL, WITH_TERMINAL)).isFalse();
    assertThat(SignalForwarder.isOfGroup(EndSignal.HUP, WITHOUT, WITHOUT)).isFalse();
    // The kernel tells the leader of the session alone.
    String leader = "40 (java) S 1 40 40 34816 40 0";
    String alone = "40 (java) S 1 40 40 0 -1 0";
    assertThat(SignalForwarder.isOfGroup(EndSignal.HUP, leader, alone)).isFalse();
    assertThat(SignalForwarder.isOfGroup(EndSignal.HUP, "", "")).isFalse();
  }

  @Test
  void aSignalOfTheGroupReachesOnlyAProgramThatWasThere() {
    String program = "43 (a) b) S 42 42 40 34816 42 0 1 2 3 4 5 6 7 8 20 0 1 0 8812 5 6";
    assertThat(SignalForwarder.startTicks(program)).isEqualTo(8812);
    assertThat(SignalForwarder.startTicks("")).isEqualTo(Long.MAX_VALUE);
    assertThat(SignalForwarder.hadReached(true, 8813, program)).isTrue();
    assertThat(SignalForwarder.hadReached(true, 8811, program)).isFalse();
    assertThat(SignalForwarder.hadReached(false, 8813, program)).isFalse();
    assertThat(SignalForwarder.hadReached(true, 8813, "")).isFalse();
  }
}
