package dev.vgpu.k8s.node;

import static java.nio.charset.StandardCharsets.UTF_8;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.vgpu.k8s.names.Driver;
import dev.vgpu.request.PreemptionClass;
import io.fabric8.kubernetes.api.model.NodeBuilder;
import io.fabric8.kubernetes.api.model.Pod;
import io.fabric8.kubernetes.api.model.PodBuilder;
import io.fabric8.kubernetes.api.model.StatusDetails;
import java.io.IOException;
import java.net.URI;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;

/** Slots over real sockets, a real pool and emulated GPUs; and their metrics. */
class SlotsOfPodsTest {
  private TestNode node;
  private StrictDevices devices;
  private NodeAgent agent;

  @BeforeEach
  void open() throws Exception {
    node = new TestNode();
    devices = new StrictDevices(TestNode.settings(node.directory), node.kubelet.threads());
    agent = node.agent();
    TestNode.await("registered", () -> devices.registrations.get() == 1);
    assertThat(devices.connect()).hasSize(8);
  }

  @AfterEach
  void close() throws IOException {
    if (agent != null) {
      agent.close();
    }
    if (devices != null) {
      devices.close();
    }
    node.close();
  }

  @Test
  void containerGetsWhatIsReservedWhenItStartsAndGivesItBackWhenItIsGone() throws Exception {
    Pod pod = node.pod("a", node.reservation(25, "1Gi"));
    String id = devices.admit("a", "main", "slot-3");
    assertThat(node.pool.leases()).as("who it is for is not known yet").isEmpty();
    devices.preStart("slot-3");
    assertThat(node.pool.leases()).hasSize(1);
    assertThat(node.pool.leases().get(0).request().computePercent()).hasValue(25);
    assertThat(node.pool.leases().get(0).request().preemptionClass())
        .isEqualTo(PreemptionClass.ONLINE);
    String lease = node.kubelet.variable(id, "VGPU_LEASE");
    assertThat(node.pool.leases().get(0).id()).isEqualTo(lease);

    String metrics = metrics();
    assertThat(metrics)
        .contains(
            "vgpu_gpu_time_seconds_total{gpu=\"0\",UUID=\""
                + node.pool.gpus().get(0).id()
                + "\",pci_bus_id=\"00000000:01:00.0\",device=\"nvidia0\",modelName=\""
                + node.pool.gpus().get(0).model()
                + "\",Hostname=\"node-1\",namespace=\"team\",pod=\"a\",container=\"main\","
                + "pod_uid=\""
                + pod.getMetadata().getUid()
                + "\"} 0.0\n")
        .contains("pod=\"a\"", "vgpu_memory_quota_bytes");

    devices.preStart("slot-3"); // the container restarts
    assertThat(node.kubelet.variable(id, "VGPU_LEASE")).isEqualTo(lease);
    devices.ended("a", "slot-3");
    node.delete("a");
    TestNode.await("given back", () -> node.pool.leases().isEmpty());
    TestNode.await("no edits", () -> node.kubelet.edits(id).isEmpty());
    assertThat(metrics()).doesNotContain("pod=\"a\"").contains("vgpu_device_health");
  }

  @Test
  void severalSlotsAreOneVirtualGpuOnSeveralGpus() throws Exception {
    Pod ended = node.pod("old", node.reservation(25, "1Gi"));
    String before = devices.admit(ended.getMetadata().getName(), "main", "slot-5");
    devices.preStart("slot-5");
    devices.ended("old", "slot-5");
    node.delete("old");

    String gpus =
        "\"" + node.pool.gpus().get(0).id() + "\",\"" + node.pool.gpus().get(1).id() + "\"";
    Pod ignored =
        node.pod("a", "{\"main\":{\"gpus\":[" + gpus + "],\"share\":80,\"memory\":\"1Gi\"}}");
    String id = devices.admit("a", "main", Driver.SLOT, List.of("slot-5", "slot-3"));
    assertThat(node.kubelet.edits(before)).as("what the slots' last owner had").isEmpty();
    devices.preStart(Driver.SLOT, List.of("slot-3", "slot-5"));
    assertThat(node.pool.leases()).hasSize(1);
    assertThat(node.pool.leases().get(0).gpus())
        .containsExactly(node.pool.gpus().get(0).id(), node.pool.gpus().get(1).id());
    assertThat(node.pool.leases().get(0).request().computePercent()).hasValue(80);
    assertThat(node.kubelet.variable(id, "VGPU_LEASE")).isEqualTo(node.pool.leases().get(0).id());
    assertThat(metrics().lines().filter(line -> line.startsWith("vgpu_share_percent{")))
        .as("a series on each GPU")
        .hasSize(2)
        .allMatch(line -> line.contains("pod=\"a\"") && line.endsWith(" 80.0"));
    devices.ended("a", List.of("slot-3", "slot-5"));
    node.delete("a");
    TestNode.await("given back", () -> node.pool.leases().isEmpty());
  }

  /** An init container, for example: the pod goes on. */
  @Test
  void aContainerThatHasEndedGivesBackWhatItHad() throws Exception {
    Pod pod = node.pod("a", node.reservation(25, "1Gi"));
    String id = devices.admit("a", "main", "slot-3");
    devices.preStart("slot-3");
    devices.ended("a", "slot-3");
    int lists = devices.lists.get();
    TestNode.await("looked several times", () -> devices.lists.get() > lists + 3);
    assertThat(node.pool.leases()).as("the API says that it runs").hasSize(1);
    Pod ended =
        new PodBuilder(pod)
            .withNewStatus()
            .addNewContainerStatus()
            .withName("main")
            .withNewState()
            .withNewTerminated()
            .withExitCode(0)
            .endTerminated()
            .endState()
            .endContainerStatus()
            .endStatus()
            .build();
    Pod ignored = node.api.resource(ended).updateStatus();
    TestNode.await("given back", () -> node.pool.leases().isEmpty());
    TestNode.await("not described any more", () -> node.kubelet.edits(id).isEmpty());
  }

  private String metrics() throws IOException {
    URI uri = URI.create("http://localhost:" + agent.metricsPort() + "/metrics");
    return new String(uri.toURL().openStream().readAllBytes(), UTF_8);
  }

  @Test
  void anAmbiguityIsRefused() {
    Pod ignored = node.pod("a", node.reservation(25, "1Gi"));
    String unused = devices.admit("a", "main", "slot-0");
    devices.list("b", "main", "slot-0");
    assertThatThrownBy(() -> devices.preStart("slot-0")).hasMessageContaining("which container");
    devices.ended("a", "slot-0");
    devices.ended("b", "slot-0");
    assertThat(node.pool.leases()).isEmpty();
  }

  @Test
  void wrongReservationIsRefusedWithWhatIsWrong() {
    Pod ignored = node.pod("a", "{\"side\":{}}");
    String unused = devices.admit("a", "main", "slot-0");
    assertThatThrownBy(() -> devices.preStart("slot-0"))
        .hasMessageContaining("nothing is reserved for the container main");
    assertThatThrownBy(() -> devices.admit("c", "main", "slot-99"))
        .hasMessageContaining("no such slot: slot-99");
    assertThat(agent.holdings().all()).isEmpty();
  }

  @Test
  void schedulerIsToldTheGpusAndMayReserveInPercent() throws Exception {
    String gpu = node.pool.gpus().get(1).id().value();
    TestNode.await("told", () -> told().contains("\"uuid\":\"" + gpu + "\""));
    Pod ignored =
        node.pod("a", "{\"main\":{\"gpu\":\"" + gpu + "\",\"share\":10,\"memoryPercent\":25}}");
    String unused = devices.admit("a", "main", "slot-0");
    devices.preStart("slot-0");
    assertThat(node.pool.leases().get(0).request().memory().bytes())
        .isEqualTo(node.pool.gpus().get(1).usableMemory().bytes() / 4);
  }

  private String told() {
    Map<String, String> notes =
        node.api.nodes().withName(TestNode.NAME).get().getMetadata().getAnnotations();
    return notes == null ? "" : notes.getOrDefault(Driver.GPUS, "");
  }

  @Test
  void nodeThatWasMadeAnewIsToldItsGpusAgain() throws Exception {
    TestNode.await("told", () -> told().contains("uuid"));
    List<StatusDetails> ignored = node.api.nodes().withName(TestNode.NAME).delete();
    node.api
        .resource(new NodeBuilder().withNewMetadata().withName(TestNode.NAME).endMetadata().build())
        .create();
    TestNode.await("told again", () -> told().contains("uuid"));
  }

  /** The kubelet restarts meanwhile: it knows no pods, and needs the plugin. */
  @Test
  void anAbsentApiServerCostsNoContainerItsVirtualGpu() throws Exception {
    Pod ignored = node.pod("a", node.reservation(25, "1Gi"));
    String id = devices.admit("a", "main", "slot-3");
    devices.preStart("slot-3");
    String lease = node.kubelet.variable(id, "VGPU_LEASE");
    node.mock.goAway();
    TestNode.await("it is asked in vain", () -> node.mock.unserved.get() > 0);
    devices.restart();
    TestNode.await("registered again", () -> devices.registrations.get() == 2);
    assertThat(devices.connect()).hasSize(8);
    devices.learnsItsPods();
    devices.preStart("slot-3"); // the container restarts
    node.mock.comeBack();
    assertThat(node.pool.leases()).hasSize(1);
    assertThat(node.kubelet.variable(id, "VGPU_LEASE")).isEqualTo(lease);
    devices.ended("a", "slot-3");
    node.delete("a");
    TestNode.await("given back", () -> node.pool.leases().isEmpty());
  }

  @Test
  void restartedKubeletFindsItAgain() throws Exception {
    devices.restart();
    devices.learnsItsPods();
    TestNode.await("registered again", () -> devices.registrations.get() == 2);
    assertThat(devices.connect()).hasSize(8);
  }
}
