package dev.vgpu.k8s.node;

import static org.assertj.core.api.Assertions.assertThat;

import dev.vgpu.k8s.names.Driver;
import dev.vgpu.k8s.proto.deviceplugin.Device;
import dev.vgpu.k8s.proto.drahealth.HealthStatus;
import dev.vgpu.k8s.proto.drahealth.NodeWatchResourcesResponse;
import io.fabric8.kubernetes.api.model.Pod;
import io.fabric8.kubernetes.api.model.resource.v1.ResourceSlice;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardCopyOption;
import java.util.Iterator;
import java.util.List;
import java.util.stream.IntStream;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;

/** What the kubelet and the scheduler are told when an emulated GPU is lost, and is back. */
class LostGpuTest {
  private static final Path SETTINGS = Path.of(System.getenv("VGPU_EMULATOR_DIR"), "nvml");

  private TestNode node;
  private StrictDevices devices;
  private NodeAgent agent;

  @BeforeEach
  void open() throws Exception {
    node = new TestNode();
    devices = node.devices();
    agent = node.agent();
    TestNode.await("registered", () -> devices.registrations.get() == 1);
    assertThat(devices.connect()).hasSize(8);
  }

  @AfterEach
  void close() throws IOException {
    Files.deleteIfExists(SETTINGS);
    agent.close();
    devices.close();
    node.close();
  }

  private static void read(String... lines) throws IOException {
    Path next = SETTINGS.resolveSibling("nvml.next");
    Files.write(next, List.of(lines));
    Files.move(next, SETTINGS, StandardCopyOption.REPLACE_EXISTING);
  }

  private List<String> unhealthy() {
    return devices.listed(Driver.SLOT).stream()
        .filter(one -> !one.getHealth().equals("Healthy"))
        .map(Device::getID)
        .toList();
  }

  private boolean isTold(int gpu) {
    return node.api
        .nodes()
        .withName(TestNode.NAME)
        .get()
        .getMetadata()
        .getAnnotations()
        .getOrDefault(Driver.GPUS, "")
        .contains(node.pool.gpus().get(gpu).id().value());
  }

  private String taints() {
    return node
        .api
        .resources(ResourceSlice.class)
        .withName(TestNode.NAME + "-vgpu.dev")
        .get()
        .getSpec()
        .getDevices()
        .stream()
        .map(device -> device.getTaints().toString())
        .toList()
        .toString();
  }

  @Test
  void slotsAreAsHealthyAsTheGpusOfTheirContainers() throws Exception {
    Pod ignored = node.pod("a", node.reservation(25, "1Gi"));
    String unused = devices.admit("a", "main", "slot-3");
    devices.preStart("slot-3");
    assertThat(unhealthy()).isEmpty();
    TestNode.await("told", () -> isTold(0) && isTold(1));

    read("lost.0=1");
    TestNode.await("its slot is unhealthy", () -> unhealthy().equals(List.of("slot-3")));
    TestNode.await("the scheduler is not told of it", () -> !isTold(0) && isTold(1));
    TestNode.await("tainted", () -> taints().contains("lost"));

    read("lost=1");
    List<String> all = IntStream.range(0, 8).mapToObj(number -> "slot-" + number).toList();
    TestNode.await("no GPU is left", () -> unhealthy().equals(all));

    read("lost=0");
    TestNode.await("all are healthy", () -> unhealthy().isEmpty());
    TestNode.await("the scheduler is told again", () -> isTold(0) && isTold(1));
    devices.ended("a", "slot-3");
    node.delete("a");
    TestNode.await("given back", () -> agent.holdings().all().isEmpty());
  }

  /** A call that hangs is tried for minutes; the kubelet must know what its pods have. */
  @Test
  void theKubeletIsToldWhileTheApiServerHangs() throws Exception {
    Pod ignored = node.pod("a", node.reservation(25, "1Gi"));
    String unused = devices.admit("a", "main", "slot-3");
    devices.preStart("slot-3");
    TestNode.await("told", () -> isTold(0) && isTold(1));
    node.kubelet.register();
    node.mock.goAway();
    TestNode.await("a call hangs", () -> node.mock.unserved.get() > 0);
    read("lost.0=1");
    TestNode.await("its slot is unhealthy", () -> unhealthy().equals(List.of("slot-3")));
    Iterator<NodeWatchResourcesResponse> told = node.kubelet.health();
    assertThat(told.hasNext()).as("what was told last").isTrue();
    NodeWatchResourcesResponse health = told.next();
    while (isHealthy(health) && told.hasNext()) {
      health = told.next();
    }
    assertThat(isHealthy(health)).isFalse();
    node.mock.comeBack();
    TestNode.await("tainted", () -> taints().contains("lost"));
  }

  private static boolean isHealthy(NodeWatchResourcesResponse health) {
    return health.getDevicesList().stream()
        .allMatch(one -> one.getHealth() == HealthStatus.HEALTHY);
  }

  /** A degraded GPU still runs what is on it, and the scheduler still counts it there. */
  @Test
  void aFaultIsInThePodsStatusAndChangesNothingElse() throws Exception {
    Pod ignored = node.pod("a", node.reservation(25, "1Gi"));
    String unused = devices.admit("a", "main", "slot-3");
    devices.preStart("slot-3");
    TestNode.await("told", () -> isTold(0) && isTold(1));
    read("rows_pending.0=1");
    TestNode.await("its slot is unhealthy", () -> unhealthy().equals(List.of("slot-3")));
    assertThat(isTold(0)).isTrue();
    assertThat(node.pool.leases()).hasSize(1);
  }
}
