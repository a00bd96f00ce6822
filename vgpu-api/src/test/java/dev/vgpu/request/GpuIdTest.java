package dev.vgpu.request;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatIllegalArgumentException;
import static org.assertj.core.api.Assertions.assertThatNullPointerException;

import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

class GpuIdTest {
  @Test
  void textIsTheBareName() {
    assertThat(new GpuId("GPU-7a")).hasToString("GPU-7a").isEqualTo(new GpuId("GPU-7a"));
  }

  @Test
  void otherNamesAreOtherGpus() {
    assertThat(new GpuId("GPU-7a")).isNotEqualTo(new GpuId("GPU-7b")).isNotEqualTo("GPU-7a");
    assertThat(new GpuId("GPU-7a")).hasSameHashCodeAs(new GpuId("GPU-7a"));
    assertThat(new GpuId("GPU-7a").hashCode()).isNotEqualTo(new GpuId("GPU-7b").hashCode());
  }

  @ParameterizedTest
  @ValueSource(strings = {"", " ", "\t\n"})
  void blankNameIsRefused(String value) {
    assertThatIllegalArgumentException()
        .isThrownBy(() -> new GpuId(value))
        .withMessageContaining("blank");
  }

  @Test
  void noNameIsRefused() {
    assertThatNullPointerException().isThrownBy(() -> new GpuId(null)).withMessage("value");
  }
}
