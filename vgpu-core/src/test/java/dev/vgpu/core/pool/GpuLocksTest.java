package dev.vgpu.core.pool;

import static org.assertj.core.api.Assertions.assertThat;

import org.junit.jupiter.api.Test;

class GpuLocksTest {
  @Test
  void namesOfFilesHoldNothingOdd() {
    assertThat(GpuLocks.fileName("GPU-ddf350be_3.A")).isEqualTo("GPU-ddf350be_3.A");
    assertThat(GpuLocks.fileName("MIG-a/1:2 ü")).isEqualTo("MIG-a_1_2__");
  }
}
