package dev.vgpu.samples.cuda;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatIllegalArgumentException;

import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

class SpinArgumentsTest {
  @Test
  void whatIsNotGivenHasItsDefault() {
    SpinArguments arguments =
        new SpinArguments(Spinning.options(), "--us", "250", "--json", "--sync=0");
    assertThat(arguments.number("us")).isEqualTo(250);
    assertThat(arguments.number("sync")).isZero();
    assertThat(arguments.number("grid")).isEqualTo(1);
    assertThat(arguments.isSet("json")).isTrue();
  }

  @ParameterizedTest
  @CsvSource({
    "--what, not known",
    "us, not known",
    "--us, needs a value",
    "--us x, not a whole number",
    "--us -1, not a whole number",
    "--count 99999999999, not a whole number"
  })
  void mistakesAreNamed(String arguments, String message) {
    assertThatIllegalArgumentException()
        .isThrownBy(() -> new Spinning(new SpinArguments(Spinning.options(), arguments.split(" "))))
        .withMessageContaining(message);
  }
}
