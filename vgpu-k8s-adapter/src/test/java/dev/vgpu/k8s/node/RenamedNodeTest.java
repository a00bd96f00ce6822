package dev.vgpu.k8s.node;

import static org.assertj.core.api.Assertions.assertThat;

import dev.vgpu.k8s.node.holding.Holding;
import dev.vgpu.k8s.proto.dra.Claim;
import dev.vgpu.k8s.proto.dra.Device;
import io.fabric8.kubernetes.api.model.NodeBuilder;
import io.fabric8.kubernetes.api.model.Pod;
import io.fabric8.kubernetes.api.model.resource.v1.ResourceSlice;
import java.io.IOException;
import java.util.List;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;

/** The role starts again under another name of its node, with the records of the old name. */
class RenamedNodeTest {
  private static final String NEW = "node-2";

  private TestNode node;
  private StrictDevices devices;
  private NodeAgent agent;
  private Claim claim;

  /** A claim and a slot are held under the old name. */
  @BeforeEach
  void open() throws Exception {
    node = new TestNode();
    devices = node.devices();
    agent = node.agent();
    node.kubelet.register();
    claim = node.create(ClaimJson.allocated("gpu-of-a", node.device(1), 30, "1Gi"));
    List<Device> ignored = node.kubelet.prepare(claim);
    TestNode.await("registered", () -> devices.registrations.get() == 1);
    assertThat(devices.connect()).hasSize(8);
    Pod unused = node.pod("b", node.reservation(30, "1Gi"));
    String cdi = devices.admit("b", "main", "slot-2");
    devices.preStart("slot-2");
    assertThat(node.kubelet.edits(cdi)).isPresent();
    assertThat(agent.holdings().all()).hasSize(2);
    agent.close();
  }

  @AfterEach
  void close() throws IOException {
    agent.close();
    devices.close();
    node.close();
  }

  private void create(String name) {
    node.api
        .resource(new NodeBuilder().withNewMetadata().withName(name).endMetadata().build())
        .create();
  }

  /**
   * The kubelet of the new name has ended the pods of the old one, whose objects are still there.
   */
  @Test
  void whatPodsOfTheOldNameHadIsGivenBackAndNothingIsGivenTwice() throws Exception {
    create(NEW);
    devices.ended("b", "slot-2");
    agent = node.agent(NEW);
    node.kubelet.register();
    TestNode.await("all is given back", () -> agent.holdings().all().isEmpty());
    TestNode.await("no records", () -> node.isEmpty("plugins/held"));
    assertThat(node.files("cdi")).isEmpty();
    TestNode.await("a slice of the new name", () -> slice(NEW) != null);
    assertThat(slice(NEW).getSpec().getPool().getName()).isEqualTo(NEW);
    assertThat(slice(TestNode.NAME).getMetadata().getOwnerReferences().get(0).getName())
        .as("it goes with the old Node")
        .isEqualTo(TestNode.NAME);

    assertThat(node.kubelet.askToPrepare(claim).getError()).contains("[node-1]", "pool node-2");
    assertThat(node.pool.leases()).as("programs that still run keep theirs").hasSize(2);
    Claim large = node.create(allocatedHere("large", 80));
    assertThat(node.kubelet.askToPrepare(large).getError()).contains("110 percent");
    List<Device> given = node.kubelet.prepare(node.create(allocatedHere("small", 60)));
    assertThat(given).map(Device::getPoolName).containsExactly(NEW);
    node.kubelet.unprepare(claim);
  }

  private String allocatedHere(String name, int share) {
    return ClaimJson.allocated(name, node.device(1), share, "1Gi")
        .replace("\"pool\":\"node-1\"", "\"pool\":\"node-2\"");
  }

  private ResourceSlice slice(String name) {
    return node.api.resources(ResourceSlice.class).withName(name + "-vgpu.dev").get();
  }

  /** A mistake in --node-name: the kubelet still runs the pods of the right name. */
  @Test
  void aNameThatTheClusterDoesNotHaveCostsNothing() throws Exception {
    List<Holding> before = agent.holdings().all();
    agent = node.agent("node-3");
    int lists = devices.lists.get();
    TestNode.await("looked several times", () -> devices.lists.get() > lists + 3);
    assertThat(agent.holdings().all()).containsExactlyInAnyOrderElementsOf(before);
    agent.close();
    agent = node.agent();
    node.kubelet.register();
    assertThat(node.kubelet.prepare(claim)).hasSize(1);
    assertThat(node.pool.leases()).hasSize(2);
  }
}
