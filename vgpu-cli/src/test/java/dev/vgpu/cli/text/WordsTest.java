package dev.vgpu.cli.text;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.vgpu.request.MemorySize;
import dev.vgpu.request.PreemptionClass;
import dev.vgpu.request.SharePolicy;
import java.time.Duration;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.EnumSource;
import org.junit.jupiter.params.provider.ValueSource;
import picocli.CommandLine.TypeConversionException;

class WordsTest {
  @ParameterizedTest
  @CsvSource({
    "500ms, 500",
    "10s, 10000",
    "2m, 120000",
    "1h, 3600000",
    "PT0.25S, 250",
    "0s, 0",
    "3000us, 3"
  })
  void durations(String text, long millis) {
    assertThat(Words.duration(text)).isEqualTo(Duration.ofMillis(millis));
  }

  @ParameterizedTest
  @ValueSource(strings = {"0s", "100us", "250ms", "1s", "90s", "2m", "61m", "1h", "999999999h"})
  void durationsAreWrittenAsTheyAreRead(String text) {
    assertThat(Words.of(Words.duration(text))).isEqualTo(text);
  }

  @ParameterizedTest
  @ValueSource(strings = {"", "5", "s", "-1s", "PT-1S", "1.5s", "99999999999s"})
  void whatIsNoDurationIsRefused(String text) {
    assertThatThrownBy(() -> Words.duration(text)).isInstanceOf(TypeConversionException.class);
  }

  @ParameterizedTest
  @EnumSource
  void policiesAreReadAsTheyAreWritten(SharePolicy policy) {
    assertThat(Words.policy(Words.of(policy))).isEqualTo(policy);
  }

  @ParameterizedTest
  @EnumSource
  void classesAreReadAsTheyAreWritten(PreemptionClass preemptionClass) {
    assertThat(Words.preemptionClass(Words.of(preemptionClass))).isEqualTo(preemptionClass);
  }

  @Test
  void sizesAreShort() {
    assertThat(Words.size(MemorySize.ofBytes(5))).isEqualTo("5 B");
    assertThat(Words.size(MemorySize.ofMebibytes(1536))).isEqualTo("1.5 GiB");
    assertThat(Words.size(MemorySize.ofBytes((1L << 30) - 1))).isEqualTo("1024 MiB");
    assertThat(Words.size(MemorySize.ofGibibytes(80))).isEqualTo("80 GiB");
  }
}
