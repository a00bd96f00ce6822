package dev.vgpu.cuda.files;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.vgpu.VgpuException;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
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
    assertThat(nodes.of("GPU-a1", "")).isEmpty();
  }

  @Test
  void onlyThoseOfTheNamedGpus() throws IOException {
    twoGpus();
    assertThat(nodes.of("GPU-B2", ""))
        .containsExactly(
            dev.resolve("nvidiactl"), dev.resolve("nvidia-uvm"), dev.resolve("nvidia1"));
    assertThat(nodes.of("GPU-a1,GPU-b2", ""))
        .contains(dev.resolve("nvidia0"), dev.resolve("nvidia1"))
        .doesNotContain(dev.resolve("nvidia-caps/nvidia-cap30"));
  }

  @Test
  void forMigThoseOfAllGpusAndInstancesWhereItIsNotToldWhich() throws IOException {
    twoGpus();
    assertThat(nodes.of("MIG-0123", ""))
        .contains(
            dev.resolve("nvidia0"), dev.resolve("nvidia1"), dev.resolve("nvidia-caps/nvidia-cap30"))
        .doesNotContain(dev.resolve("nvidia-caps/nvidia-cap1"));
  }

  @Test
  void driverThatListsNothingIsSaid() throws IOException {
    Files.createFile(dev.resolve("nvidiactl"));
    assertThatThrownBy(() -> nodes.of("GPU-a1", ""))
        .isInstanceOf(VgpuException.class)
        .hasMessageContaining("lists no GPU");
  }

  private Path capability(int minor) {
    return dev.resolve("nvidia-caps/nvidia-cap" + minor);
  }

  private void minors(String... lines) throws IOException {
    Path file = machine.resolve("nvidia-caps/mig-minors");
    Files.createDirectories(machine.resolve("nvidia-caps"));
    Files.write(file, List.of(lines));
  }

  @Test
  void forAMigInstanceThoseOfItsOwn() throws IOException {
    twoGpus();
    Files.createFile(capability(31));
    Files.createFile(capability(300));
    minors(
        "config 1",
        "monitor 2",
        "gpu0/gi1/access 12",
        "gpu1/gi1/access 30",
        "gpu1/gi1/ci0/access 31",
        "gpu1/gi10/access 300");
    assertThat(nodes.of("MIG-0123", "GPU-B2/1/0"))
        .containsExactly(
            dev.resolve("nvidiactl"),
            dev.resolve("nvidia-uvm"),
            dev.resolve("nvidia1"),
            capability(30),
            capability(31));
  }

  @Test
  void withoutTheListOfMinorsTheCapabilitysOwnFileTells() throws IOException {
    twoGpus();
    Files.createFile(capability(31));
    Path access = Files.createDirectories(machine.resolve("proc/capabilities/gpu0/mig/gi3/ci2"));
    String rest = "\nDeviceFileMode: 292\nDeviceFileModify: 1\n";
    Files.writeString(access.resolveSibling("access"), "DeviceFileMinor: 30" + rest);
    Files.writeString(access.resolve("access"), "DeviceFileMinor: 31" + rest);
    assertThat(nodes.of("MIG-0123", "GPU-a1/3/2"))
        .contains(dev.resolve("nvidia0"), capability(30), capability(31))
        .doesNotContain(dev.resolve("nvidia1"));
  }

  @Test
  void aNodeOfAMigInstanceThatIsNotThereIsSaid() throws IOException {
    twoGpus();
    minors("gpu0/gi3/access 30", "gpu0/gi3/ci0/access 99");
    assertThatThrownBy(() -> nodes.of("MIG-0123", "GPU-a1/3/0"))
        .isInstanceOf(VgpuException.class)
        .hasMessageContaining("nvidia-cap99")
        .hasMessageContaining("nvidia-modprobe");
    assertThatThrownBy(() -> nodes.of("MIG-0123", "GPU-a1/3/1"))
        .hasMessageContaining("does not tell the device node");
    assertThatThrownBy(() -> nodes.of("MIG-0123", "GPU-c3/3/0"))
        .hasMessageContaining("does not list the GPU");
    assertThatThrownBy(() -> nodes.of("MIG-0123", "GPU-a1"))
        .hasMessageContaining("not the place of a MIG instance");
  }
}
