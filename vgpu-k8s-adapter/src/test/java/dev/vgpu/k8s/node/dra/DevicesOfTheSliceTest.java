package dev.vgpu.k8s.node.dra;

import static org.assertj.core.api.Assertions.assertThat;

import com.fasterxml.jackson.databind.JsonNode;
import dev.vgpu.k8s.node.health.GpuConditions;
import dev.vgpu.k8s.node.health.MockedGpus;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** The devices of a slice, by what is read of the GPUs. */
class DevicesOfTheSliceTest {
  private final MockedGpus gpus = new MockedGpus("GPU-1", "GPU-2");
  private final GpuConditions conditions = new GpuConditions(gpus.pool);

  private JsonNode devices() {
    conditions.read();
    return new NodeDevices(gpus.pool, conditions, "n")
        .slices(false, true, 1)
        .get(0)
        .path("devices");
  }

  /** kube-scheduler evicts pods whose claims have it, and gives it to no other. */
  @Test
  void aGpuWhoseMigModeIsSwitchedOnIsTaintedUntilItIsSwitchedOff() {
    gpus.reads("GPU-2", Map.of("mig_mode", "off"));
    assertThat(devices().at("/1/taints").isMissingNode()).isTrue();
    gpus.reads("GPU-2", Map.of("mig_mode", "on"));
    JsonNode devices = devices();
    assertThat(devices).hasSize(2);
    assertThat(devices.at("/0/taints").isMissingNode()).isTrue();
    assertThat(devices.at("/1/taints/0/key").asText()).isEqualTo("vgpu.dev/health");
    assertThat(devices.at("/1/taints/0/value").asText()).isEqualTo("mig");
    assertThat(devices.at("/1/taints/0/effect").asText()).isEqualTo("NoExecute");
    gpus.reads("GPU-2", Map.of("mig_mode", "off"));
    assertThat(devices().at("/1/taints").isMissingNode()).isTrue();
  }

  @Test
  void topologyIsLeftOutWhereItIsUnknown() {
    gpus.reads("GPU-1", Map.of("numa_node", "1", "pci", "00000000:ff:1f.7"));
    JsonNode devices = devices();
    assertThat(devices.at("/0/attributes/numaNode/int").asInt()).isEqualTo(1);
    assertThat(devices.at("/0/attributes/pciBusID/string").asText()).isEqualTo("00000000:ff:1f.7");
    for (JsonNode device : devices) {
      assertThat(device.path("attributes").has(PcieRoot.ATTRIBUTE)).isFalse();
    }
    assertThat(devices.at("/1/attributes").has("numaNode")).isFalse();
    assertThat(devices.at("/1/attributes").has("pciBusID")).isFalse();
  }

  @Test
  void aCliqueIsAnAttributeIfTheGpuIsInOne() {
    gpus.reads("GPU-1", Map.of("clique", "5e5e5e5e-5e5e-5e5e-5e5e-5e5e5e5e5e5e.4294967295"));
    JsonNode devices = devices();
    assertThat(devices.at("/0/attributes/clique/string").asText()).endsWith("5e.4294967295");
    assertThat(devices.at("/1/attributes").has("clique")).isFalse();
  }

  @Test
  void rootIsReadFromTheKernelsLink(@TempDir Path sys) throws Exception {
    Path devices = Files.createDirectories(sys.resolve("bus/pci/devices"));
    link(devices, "0000:41:00.0", "../../../devices/pci0000:40/0000:40:01.1/0000:41:00.0");
    link(devices, "10000:01:00.0", "../../../devices/platform/x/pci10000:00/10000:01:00.0");
    link(devices, "0000:02:00.0", "../../../devices/virtual/0000:02:00.0");
    assertThat(PcieRoot.of(devices, "00000000:41:00.0")).contains("pci0000:40");
    assertThat(PcieRoot.of(devices, "0000:41:00.0")).contains("pci0000:40");
    assertThat(PcieRoot.of(devices, "00010000:01:00.0")).contains("pci10000:00");
    assertThat(PcieRoot.of(devices, "00000000:02:00.0")).as("not of a root").isEmpty();
    assertThat(PcieRoot.of(devices, "00000000:03:00.0")).as("no such device").isEmpty();
    assertThat(PcieRoot.of(devices, "../../etc")).isEmpty();
    assertThat(PcieRoot.of(devices, "")).isEmpty();
  }

  private static void link(Path devices, String name, String target) throws Exception {
    Path made = Files.createSymbolicLink(devices.resolve(name), Path.of(target));
    assertThat(Files.isSymbolicLink(made)).isTrue();
  }

  @Test
  void rootIsAnAttribute(@TempDir Path sys) throws Exception {
    link(sys, "0000:41:00.0", "../../../devices/pci0000:40/0000:40:01.1/0000:41:00.0");
    gpus.reads("GPU-1", Map.of("pci", "00000000:41:00.0"));
    conditions.read();
    JsonNode spec =
        new NodeDevices(gpus.pool, conditions, "n", sys, List::of).slices(false, true, 1).get(0);
    assertThat(
            spec.at("/devices/0/attributes")
                .path("resource.kubernetes.io/pcieRoot")
                .path("string")
                .asText())
        .isEqualTo("pci0000:40");
  }
}
