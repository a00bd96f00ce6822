package dev.vgpu.request;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatIllegalArgumentException;
import static org.assertj.core.api.Assertions.assertThatNullPointerException;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;

class MemorySizeTest {
  private static final MemorySize LARGEST = MemorySize.ofBytes(Long.MAX_VALUE);

  @Test
  void sizesAreInBytes() {
    assertThat(MemorySize.ofBytes(7).bytes()).isEqualTo(7);
    assertThat(MemorySize.ofMebibytes(3).bytes()).isEqualTo(3L << 20);
    assertThat(MemorySize.ofGibibytes(5).bytes()).isEqualTo(5L << 30);
    assertThat(MemorySize.ofMebibytes(0)).isEqualTo(MemorySize.ZERO);
  }

  @Test
  void negativeSizeIsRefused() {
    assertThatIllegalArgumentException()
        .isThrownBy(() -> MemorySize.ofBytes(-1))
        .withMessageContaining("bytes=-1");
    assertThatIllegalArgumentException()
        .isThrownBy(() -> MemorySize.ofMebibytes(-1))
        .withMessageContaining("-1");
    assertThatIllegalArgumentException()
        .isThrownBy(() -> MemorySize.ofGibibytes(Long.MIN_VALUE))
        .withMessageContaining("negative");
  }

  @Test
  void largestSizesFitAndTheNextAreRefused() {
    long mostMebibytes = Long.MAX_VALUE >> 20;
    long mostGibibytes = Long.MAX_VALUE >> 30;
    assertThat(MemorySize.ofMebibytes(mostMebibytes).bytes()).isEqualTo(mostMebibytes << 20);
    assertThat(MemorySize.ofGibibytes(mostGibibytes).bytes()).isEqualTo(mostGibibytes << 30);
    assertThatIllegalArgumentException()
        .isThrownBy(() -> MemorySize.ofMebibytes(mostMebibytes + 1))
        .withMessageContaining("too large");
    assertThatIllegalArgumentException()
        .isThrownBy(() -> MemorySize.ofGibibytes(mostGibibytes + 1))
        .withMessageContaining("too large");
  }

  @ParameterizedTest
  @CsvSource({
    "0B, 0",
    "17B, 17",
    "1KiB, 1024",
    "512MiB, 536870912",
    "512mib, 536870912",
    "4 GiB, 4294967296",
    "' 4\tgib ', 4294967296",
    "1TiB, 1099511627776",
    "8388607TiB, 9223370937343148032",
    "9223372036854775807B, 9223372036854775807",
    "0008b, 8",
  })
  void textIsRead(String text, long bytes) {
    assertThat(MemorySize.fromString(text)).isEqualTo(MemorySize.ofBytes(bytes));
  }

  @ParameterizedTest
  @ValueSource(
      strings = {
        "",
        " ",
        "512",
        "MiB",
        "512MB",
        "512M",
        "-1MiB",
        "+1MiB",
        "1.5GiB",
        "1,5GiB",
        "0x10B",
        "1GiB 2",
        "1 GiB GiB",
        "١MiB",
        "1PiB",
        "4 G iB"
      })
  void textOfAnotherFormIsRefusedWithAnExample(String text) {
    assertThatIllegalArgumentException()
        .isThrownBy(() -> MemorySize.fromString(text))
        .withMessageContaining("'" + text + "'")
        .withMessageContaining("512MiB");
  }

  @ParameterizedTest
  @ValueSource(strings = {"9223372036854775808B", "8388608TiB", "99999999999999999999999999GiB"})
  void textBeyondTheLargestSizeIsRefused(String text) {
    assertThatIllegalArgumentException()
        .isThrownBy(() -> MemorySize.fromString(text))
        .withMessageContaining("too large");
  }

  @Test
  void noTextIsRefused() {
    assertThatNullPointerException()
        .isThrownBy(() -> MemorySize.fromString(null))
        .withMessage("text");
  }

  @ParameterizedTest
  @CsvSource({
    "0, 0B",
    "1023, 1023B",
    "1024, 1KiB",
    "1025, 1025B",
    "1572864, 1536KiB",
    "4294967296, 4GiB",
    "1125899906842624, 1024TiB",
    "9223372036854775807, 9223372036854775807B",
  })
  void theLargestUnitThatGivesAWholeNumberIsWritten(long bytes, String text) {
    assertThat(MemorySize.ofBytes(bytes)).hasToString(text);
  }

  @Test
  void sumThatDoesNotFitIsRefused() {
    assertThat(LARGEST.plus(MemorySize.ZERO)).isEqualTo(LARGEST);
    assertThat(MemorySize.ofBytes(2).plus(MemorySize.ofBytes(3)).bytes()).isEqualTo(5);
    assertThatThrownBy(() -> LARGEST.plus(MemorySize.ofBytes(1)))
        .isInstanceOf(ArithmeticException.class);
  }
}
