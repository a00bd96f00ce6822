package dev.vgpu.k8s.node;

import static java.nio.charset.StandardCharsets.UTF_8;
import static org.assertj.core.api.Assertions.assertThat;

import dev.vgpu.k8s.proto.dra.Claim;
import io.fabric8.kubernetes.api.model.Pod;
import io.fabric8.kubernetes.api.model.resource.v1.ResourceSlice;
import java.io.ByteArrayOutputStream;
import java.io.PrintStream;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;

/** A cluster without dynamic resource allocation, or an account that may not use it. */
class MissingClaimsTest {
  private final PrintStream before = System.err;
  private final ByteArrayOutputStream log = new ByteArrayOutputStream();
  private TestNode node;
  private StrictDevices devices;
  private NodeAgent agent;

  @BeforeEach
  void open() throws Exception {
    node = new TestNode();
    devices = node.devices();
    System.setErr(new PrintStream(log, true, UTF_8));
  }

  @AfterEach
  void close() throws Exception {
    System.setErr(before);
    agent.close();
    devices.close();
    node.close();
  }

  private void startWith(int status, String path) throws Exception {
    node.mock.missing.put(path, status);
    agent = node.agent();
    TestNode.await("registered", () -> devices.registrations.get() == 1);
    assertThat(devices.connect()).hasSize(8);
  }

  private long said(String text) {
    return log.toString(UTF_8).lines().filter(line -> line.contains(text)).count();
  }

  private void awaitSaid(String text) throws InterruptedException {
    TestNode.await(text, () -> said(text) > 0);
  }

  private void awaitMissed() throws InterruptedException {
    int missed = node.mock.missed.get();
    TestNode.await("asked several times", () -> node.mock.missed.get() > missed + 3);
  }

  private void serveASlot() throws Exception {
    Pod ignored = node.pod("a", node.reservation(25, "1Gi"));
    String unused = devices.admit("a", "main", "slot-3");
    devices.preStart("slot-3");
    assertThat(node.pool.leases()).hasSize(1);
  }

  @Test
  void anOldClusterIsToldOnceAndItsSlotsAreServed() throws Exception {
    startWith(404, "/apis/resource.k8s.io/");
    serveASlot();
    awaitSaid("the GPUs are not published");
    awaitSaid("what slots leave is not published");
    awaitMissed();
    assertThat(said("the GPUs are not published")).isEqualTo(1);
    assertThat(said("what slots leave is not published")).isEqualTo(1);
    assertThat(said("need Kubernetes 1.34")).isEqualTo(2);
    devices.ended("a", "slot-3");
    node.delete("a");
    TestNode.await("given back", () -> node.pool.leases().isEmpty());
  }

  @Test
  void missingPermissionsAreSaidOnceAndUsedWhenTheyCome() throws Exception {
    startWith(403, "/resourceslices");
    serveASlot();
    awaitSaid("the GPUs are not published");
    awaitSaid("what slots leave is not published");
    awaitMissed();
    assertThat(said("what slots leave is not published")).isEqualTo(1);
    assertThat(said("lacks permissions")).isEqualTo(2);
    node.mock.missing.clear();
    TestNode.await(
        "a slice", () -> !node.api.resources(ResourceSlice.class).list().getItems().isEmpty());
  }

  /** Also after a restart, when what claims had is looked for. */
  @Test
  void aClaimThatMayNotBeReadIsRefusedAndKept() throws Exception {
    startWith(403, "/configmaps");
    node.kubelet.register();
    Claim held = node.create("held", 0, 30);
    assertThat(node.kubelet.prepare(held)).hasSize(1);
    Claim claim = node.create("gpu", 0, 30);
    agent.close();
    node.mock.missing.put("/resourceclaims", 403);
    agent = node.agent();
    node.kubelet.register();
    assertThat(node.kubelet.askToPrepare(claim).getError()).contains("Forbidden");
    awaitSaid("what claims had before is not settled");
    awaitMissed();
    assertThat(said("what claims had before is not settled")).isEqualTo(1);
    assertThat(agent.holdings().all()).hasSize(1);
    node.mock.missing.clear();
    assertThat(node.kubelet.prepare(claim)).hasSize(1);
  }
}
