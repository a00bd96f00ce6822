package dev.vgpu.samples.inference;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

final class ServerArgumentsTest {
  @Test
  void readsBothFormsAndHasDefaults() {
    assertThat(ServerArguments.parse()).isEqualTo(new ServerArguments(8080, false, false));
    assertThat(ServerArguments.parse("--port", "0", "--offline").port()).isZero();
    assertThat(ServerArguments.parse("--port=9000").port()).isEqualTo(9000);
    assertThat(ServerArguments.parse("-h").help()).isTrue();
  }

  @ParameterizedTest
  @ValueSource(strings = {"--port", "--port=x", "--port=-1", "--port=65536", "--ports", "", "80"})
  void refusesWhatItDoesNotKnow(String argument) {
    assertThatThrownBy(() -> ServerArguments.parse(argument))
        .isInstanceOf(IllegalArgumentException.class)
        .hasMessageContaining(argument.substring(argument.indexOf('=') + 1));
  }
}
