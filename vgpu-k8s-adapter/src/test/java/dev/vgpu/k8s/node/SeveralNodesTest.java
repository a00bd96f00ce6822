package dev.vgpu.k8s.node;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.vgpu.k8s.node.holding.Holding;
import dev.vgpu.k8s.proto.dra.Claim;
import dev.vgpu.k8s.proto.dra.Device;
import io.fabric8.kubernetes.api.model.Pod;
import io.fabric8.kubernetes.api.model.Quantity;
import io.fabric8.kubernetes.api.model.StatusDetails;
import io.fabric8.kubernetes.api.model.resource.v1.ResourceSlice;
import java.io.IOException;
import java.util.List;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;

/** Two nodes of one cluster, whose devices, slots and pods have the same names. */
class SeveralNodesTest {
  private static final String OTHER = "node-2";

  private TestNode node;
  private TestNode other;
  private StrictDevices devices;
  private StrictDevices othersDevices;
  private NodeAgent agent;
  private NodeAgent othersAgent;

  @BeforeEach
  void open() throws Exception {
    node = new TestNode();
    other = node.another(OTHER);
    devices = node.devices();
    othersDevices = other.devices();
    agent = node.agent();
    othersAgent = other.agent();
    node.kubelet.register();
    other.kubelet.register();
    for (StrictDevices one : List.of(devices, othersDevices)) {
      TestNode.await("registered", () -> one.registrations.get() == 1);
      assertThat(one.connect()).hasSize(8);
    }
  }

  @AfterEach
  void close() throws IOException {
    othersAgent.close();
    agent.close();
    othersDevices.close();
    devices.close();
    other.close();
    node.close();
  }

  private ResourceSlice slice(String name) {
    return node.api.resources(ResourceSlice.class).withName(name + "-vgpu.dev").get();
  }

  private void awaitOffer(String of, String share) throws InterruptedException {
    TestNode.await(
        "less is left",
        () ->
            slice(of).getSpec().getDevices().stream()
                .map(device -> device.getCapacity().get("share").getValue())
                .anyMatch(new Quantity(share)::equals));
  }

  /** The role looks after slots that are held. */
  private static void runAPod(TestNode on, StrictDevices devices) {
    Pod unused = on.pod("of-" + on.name(), on.reservation(1, "128Mi"));
    String ignored = devices.admit("of-" + on.name(), "main", "slot-7");
    devices.preStart("slot-7");
  }

  private static void awaitLooks(StrictDevices of) throws InterruptedException {
    int lists = of.lists.get();
    TestNode.await("looked several times", () -> of.lists.get() > lists + 3);
  }

  @Test
  void aClaimTouchesNoOtherNode() throws Exception {
    runAPod(node, devices);
    Claim claim = node.create("gpu-of-a", 0, 50);
    List<Device> given = node.kubelet.prepare(claim);
    assertThat(other.kubelet.askToPrepare(claim).getError()).contains("[node-1]", "pool node-2");
    assertThat(othersAgent.holdings().all()).isEmpty();
    assertThat(other.isEmpty("cdi")).isTrue();
    assertThat(other.kubelet.prepare(other.create("gpu-of-b", 0, 40))).hasSize(1);

    other.kubelet.unprepare(claim);
    assertThat(agent.holdings().all()).map(Holding::key).contains(claim.getUid());
    othersAgent.close();
    othersAgent = other.agent();
    other.kubelet.register();
    agent.close();
    agent = node.agent();
    node.kubelet.register();
    awaitLooks(devices);
    assertThat(node.kubelet.prepare(claim)).isEqualTo(given);
    assertThat(othersAgent.holdings().all()).hasSize(1);
  }

  @Test
  void whatSlotsTakeChangesTheSliceOfTheirNodeOnly() throws Exception {
    TestNode.await("slices", () -> slice(TestNode.NAME) != null && slice(OTHER) != null);
    assertThat(List.of(slice(TestNode.NAME), slice(OTHER)))
        .map(one -> one.getSpec().getPool().getName())
        .containsExactly(TestNode.NAME, OTHER);
    String before = slice(OTHER).getMetadata().getResourceVersion();
    Pod ignored = node.pod("a", node.reservation(25, "1Gi"));
    String unused = devices.admit("a", "main", "slot-0");
    devices.preStart("slot-0");
    awaitOffer(TestNode.NAME, "75");
    assertThat(slice(OTHER).getMetadata().getResourceVersion()).isEqualTo(before);
  }

  /** As a StatefulSet's pod does. */
  @Test
  void aPodThatComesBackOnAnotherNodeIsGivenBackOnItsOldOne() throws Exception {
    Pod first = node.pod("a", node.reservation(25, "1Gi"));
    String unused = devices.admit(first.getMetadata().getName(), "main", "slot-0");
    devices.preStart("slot-0");
    node.delete("a");
    Pod second = other.pod("a", other.reservation(25, "1Gi"));
    String ofSecond = othersDevices.admit(second.getMetadata().getName(), "main", "slot-0");
    othersDevices.preStart("slot-0");
    awaitLooks(devices);
    assertThat(agent.holdings().all()).as("its container has yet to end").hasSize(1);
    devices.ended("a", "slot-0");
    TestNode.await("given back", () -> agent.holdings().all().isEmpty());
    assertThat(othersAgent.holdings().all()).hasSize(1);
    assertThat(other.kubelet.edits(ofSecond)).isPresent();

    String late = devices.admit("a", "main", "slot-1");
    assertThat(late).isNotEmpty();
    assertThatThrownBy(() -> devices.preStart("slot-1")).hasMessageContaining("on this node");
  }

  @Test
  void aNodeThatGoesAwayCostsTheOthersNothing() throws Exception {
    TestNode.await("slices", () -> slice(TestNode.NAME) != null && slice(OTHER) != null);
    runAPod(node, devices);
    runAPod(other, othersDevices);
    awaitOffer(TestNode.NAME, "99");
    Claim claim = node.create("gpu-of-a", 0, 50);
    Claim others = other.create("gpu-of-b", 0, 40);
    List<Device> given = node.kubelet.prepare(claim);
    List<Device> ignored = other.kubelet.prepare(others);
    String version = slice(TestNode.NAME).getMetadata().getResourceVersion();
    othersAgent.close();
    List<StatusDetails> unused = node.api.nodes().withName(OTHER).delete();
    // As the API server does with what a Node owns.
    unused = node.api.resources(ResourceSlice.class).withName(OTHER + "-vgpu.dev").delete();
    awaitLooks(devices);
    assertThat(node.kubelet.prepare(claim)).isEqualTo(given);
    assertThat(slice(TestNode.NAME).getMetadata().getResourceVersion()).isEqualTo(version);

    othersAgent = other.agent();
    other.kubelet.register();
    awaitLooks(othersDevices);
    assertThat(slice(OTHER)).as("there is no such Node").isNull();
    assertThat(othersAgent.holdings().all()).as("what it had").hasSize(2);
    other.appear();
    TestNode.await("a slice", () -> slice(OTHER) != null);
    String owner = node.api.nodes().withName(OTHER).get().getMetadata().getUid();
    assertThat(slice(OTHER).getMetadata().getOwnerReferences().get(0).getUid()).isEqualTo(owner);
  }
}
