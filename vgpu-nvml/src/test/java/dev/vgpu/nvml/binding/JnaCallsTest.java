package dev.vgpu.nvml.binding;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.vgpu.spi.GpuDriver;
import java.nio.ByteBuffer;
import java.nio.file.Path;
import java.util.ServiceLoader;
import org.junit.jupiter.api.Test;

class JnaCallsTest {
  private final JnaCalls calls = new JnaCalls();
  private final long nvml =
      calls.open(ServiceLoader.load(GpuDriver.class).findFirst().orElseThrow().nvmlLibrary());

  @Test
  void functionsAreCalledWithNumbersAndMemory() {
    assertThat((int) calls.call(calls.symbol(nvml, "nvmlInit_v2"))).isZero();
    ByteBuffer count = NativeCalls.memory(Integer.BYTES);
    assertThat((int) calls.call(calls.symbol(nvml, "nvmlDeviceGetCount_v2"), count)).isZero();
    assertThat(count.getInt(0)).isEqualTo(3);
    ByteBuffer device = NativeCalls.memory(Long.BYTES);
    long byIndex = calls.symbol(nvml, "nvmlDeviceGetHandleByIndex_v2");
    assertThat((int) calls.call(byIndex, 2, device)).isZero();
    ByteBuffer uuid = NativeCalls.memory(Nvml.NVML_DEVICE_UUID_V2_BUFFER_SIZE);
    long uuidOf = calls.symbol(nvml, "nvmlDeviceGetUUID");
    assertThat((int) calls.call(uuidOf, device.getLong(0), uuid, uuid.capacity())).isZero();
    assertThat(NativeCalls.text(uuid)).startsWith("GPU-");
    assertThat((int) calls.call(calls.symbol(nvml, "nvmlShutdown"))).isZero();
  }

  @Test
  void textIsReadWhereItLies() {
    long text = calls.call(calls.symbol(nvml, "nvmlErrorString"), Nvml.NVML_ERROR_NOT_FOUND);
    assertThat(calls.textAt(text)).isNotBlank();
    assertThat(calls.textAt(0)).isEmpty();
  }

  @Test
  void whatIsNotThereIsTold() {
    assertThat(calls.symbol(nvml, "nvmlNoSuchFunction")).isZero();
    assertThatThrownBy(() -> calls.open(Path.of("/no/such/libnvidia-ml.so.1")))
        .isInstanceOf(UnsatisfiedLinkError.class);
  }
}
