package dev.vgpu.cuda;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.vgpu.VgpuException;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

class DeviceNodesTest {
  @TempDir Path machine;
  private Path dev;
  private DeviceNodes nodes;

  @BeforeEach
  void make() throws IOException {
    dev = Files.createDirectories(machine.resolve("dev"));
    nodes = new DeviceNodes(dev, machine.resolve("proc"));
  }

  private void gpu(String address, String uuid, int minor) throws IOException {
    Path directory = Files.createDirectories(machine.resolve("proc/gpus").resolve(address));
    Files.writeString(
        directory.resolve("information"),
        "Model: \t\t A GPU\nGPU UUID: \t " + uuid + "\nDevice Minor: \t " + minor + "\n");
    Files.createFile(dev.resolve("nvidia" + minor));
  }

  private void twoGpus() throws IOException {
    Files.createFile(dev.resolve("nvidiactl"));
    Files.createFile(dev.resolve("nvidia-uvm"));
    gpu("0000:01:00.0", "GPU-a1", 0);
    gpu("0000:02:00.0", "GPU-b2", 1);
    Path capabilities = Files.createDirectories(dev.resolve("nvidia-caps"));
    Files.createFile(capabilities.resolve("nvidia-cap1"));
    Files.createFile(capabilities.resolve("nvidia-cap30"));
  }

  @Test
  void whereThereIsNoDriverThereAreNone() {
    assertThat(nodes.of("GPU-a1")).isEmpty();
  }

  @Test
  void onlyThoseOfTheNamedGpus() throws IOException {
    twoGpus();
    assertThat(nodes.of("GPU-B2"))
        .containsExactly(
            dev.resolve("nvidiactl"), dev.resolve("nvidia-uvm"), dev.resolve("nvidia1"));
    assertThat(nodes.of("GPU-a1,GPU-b2"))
        .contains(dev.resolve("nvidia0"), dev.resolve("nvidia1"))
        .doesNotContain(dev.resolve("nvidia-caps/nvidia-cap30"));
  }

  @Test
  void forMigThoseOfAllGpusAndInstances() throws IOException {
    twoGpus();
    assertThat(nodes.of("MIG-0123"))
        .contains(
            dev.resolve("nvidia0"), dev.resolve("nvidia1"), dev.resolve("nvidia-caps/nvidia-cap30"))
        .doesNotContain(dev.resolve("nvidia-caps/nvidia-cap1"));
  }

  @Test
  void driverThatListsNothingIsSaid() throws IOException {
    Files.createFile(dev.resolve("nvidiactl"));
    assertThatThrownBy(() -> nodes.of("GPU-a1"))
        .isInstanceOf(VgpuException.class)
        .hasMessageContaining("lists no GPU");
  }
}
