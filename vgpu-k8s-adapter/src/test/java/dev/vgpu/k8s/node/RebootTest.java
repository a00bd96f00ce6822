package dev.vgpu.k8s.node;

import static org.assertj.core.api.Assertions.assertThat;

import dev.vgpu.GpuPool;
import dev.vgpu.GpuPoolOptions;
import dev.vgpu.k8s.node.holding.Holding;
import dev.vgpu.k8s.proto.dra.Claim;
import dev.vgpu.k8s.proto.dra.Device;
import io.fabric8.kubernetes.api.model.Pod;
import io.fabric8.kubernetes.api.model.resource.v1.ResourceClaim;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Comparator;
import java.util.List;
import java.util.Set;
import java.util.concurrent.FutureTask;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/**
 * The machine starts anew: {@code /run}, with the leases and the CDI files, is empty, and the
 * kubelet's directory, with the records, is as it was.
 */
class RebootTest {
  private TestNode node;
  private StrictDevices devices;
  private NodeAgent agent;
  private GpuPool pool;
  private Claim claim;
  private Claim deleted;
  private List<Device> prepared;
  private String cdi;

  @BeforeEach
  void open() throws Exception {
    node = new TestNode();
    devices = node.devices();
    agent = node.agent();
    pool = node.pool;
    connect(1);
    claim = node.create(ClaimJson.allocated("stays", node.device(1), 60, "2Gi"));
    prepared = node.kubelet.prepare(claim);
    deleted = node.create(ClaimJson.allocated("goes", node.device(0), 30, "1Gi"));
    assertThat(node.kubelet.prepare(deleted)).hasSize(1);
    Pod ignored = node.pod("a", node.reservation(60, "2Gi"));
    cdi = devices.admit("a", "main", "slot-3");
    devices.preStart("slot-3");
    assertThat(pool.leases()).hasSize(3);
  }

  private void connect(int registrations) throws Exception {
    TestNode.await("registered", () -> devices.registrations.get() == registrations);
    assertThat(devices.connect()).hasSize(8);
    node.kubelet.register();
  }

  @AfterEach
  void close() throws IOException {
    agent.close();
    devices.close();
    pool.close();
    node.close();
  }

  private void reboot() throws Exception {
    stop();
    start();
  }

  private void stop() throws Exception {
    agent.close();
    pool.close();
    remove(node.runDirectory());
    remove(node.directory.resolve("cdi"));
    devices.restart();
    devices.learnsItsPods();
    node.api.resources(ResourceClaim.class).inNamespace("team").withName("goes").delete();
    pool = GpuPool.open(GpuPoolOptions.builder().runDirectory(node.runDirectory()).build());
    assertThat(pool.leases()).isEmpty();
  }

  private void start() throws Exception {
    FutureTask<NodeAgent> opening =
        new FutureTask<>(
            () -> NodeAgent.open(TestNode.settings(node.directory), node.api, pool, step -> {}));
    new Thread(opening).start();
    TestNode.await("the role serves the kubelet", opening::isDone);
    agent = opening.get();
    connect(2);
  }

  private static void remove(Path top) throws IOException {
    try (Stream<Path> files = Files.walk(top)) {
      for (Path file : files.sorted(Comparator.reverseOrder()).toList()) {
        Files.delete(file);
      }
    }
  }

  @Test
  void whatWasPreparedIsPreparedAgainAndNothingLeaks() throws Exception {
    reboot();
    awaitSettled();
    assertThat(node.kubelet.prepare(claim)).isEqualTo(prepared);
    devices.preStart("slot-3");
    assertThat(pool.leases()).hasSize(2);
    assertThat(pool.leases())
        .map(lease -> lease.id())
        .containsExactlyInAnyOrder(
            node.kubelet.variable(prepared.get(0).getCdiDeviceIds(0), "VGPU_LEASE"),
            node.kubelet.variable(cdi, "VGPU_LEASE"));
    Claim large = node.create(ClaimJson.allocated("large", node.device(1), 60, "1Gi"));
    assertThat(node.kubelet.askToPrepare(large).getError()).contains("120 percent");

    node.kubelet.unprepare(deleted); // the kubelet remembers it
    node.kubelet.unprepare(claim);
    devices.ended("a", "slot-3");
    node.delete("a");
    TestNode.await("given back", () -> pool.leases().isEmpty());
    TestNode.await("no files", () -> node.isEmpty("plugins/held") && node.isEmpty("cdi"));
  }

  @Test
  void itIsAcquiredBeforeTheKubeletAsks() throws Exception {
    reboot();
    awaitSettled();
    assertThat(pool.leases()).hasSize(2);
    assertThat(node.files("cdi")).hasSize(2);
    assertThat(node.files("plugins/held")).hasSize(2);
  }

  private void awaitSettled() throws InterruptedException {
    TestNode.await(
        "what no claim has is given back", () -> keys().equals(Set.of(claim.getUid(), "slot-3")));
  }

  private Set<String> keys() {
    return agent.holdings().all().stream().map(Holding::key).collect(Collectors.toSet());
  }

  /** Pods that end do so without it, and those that had a claim before have it all the same. */
  @ParameterizedTest(name = "refuses={0}")
  @ValueSource(booleans = {false, true})
  void theKubeletIsServedWhileTheApiServerIsAway(boolean isRefusing) throws Exception {
    Claim ends = node.create(ClaimJson.allocated("ends", node.device(1), 20, "1Gi"));
    assertThat(node.kubelet.prepare(ends)).hasSize(1);
    stop();
    node.mock.goAway(isRefusing);
    start();
    assertThat(keys())
        .containsExactlyInAnyOrder(claim.getUid(), deleted.getUid(), ends.getUid(), "slot-3");
    TestNode.await("all are held again", () -> pool.leases().size() == 4);
    devices.preStart("slot-3");
    node.kubelet.unprepare(ends);
    assertThat(pool.leases()).hasSize(3);
    TestNode.await("it is asked in vain", () -> node.mock.unserved.get() > 0);

    node.mock.comeBack();
    TestNode.await(
        "what no claim has is given back", () -> keys().equals(Set.of(claim.getUid(), "slot-3")));
    assertThat(pool.leases()).hasSize(2);
    assertThat(node.kubelet.prepare(claim)).isEqualTo(prepared);
  }
}
