package dev.vgpu.k8s.node;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.vgpu.k8s.proto.dra.Claim;
import dev.vgpu.k8s.proto.dra.Device;
import io.fabric8.kubernetes.api.model.Pod;
import io.fabric8.kubernetes.api.model.resource.v1.CapacityRequestPolicyRange;
import io.fabric8.kubernetes.api.model.resource.v1.DeviceCapacity;
import io.fabric8.kubernetes.api.model.resource.v1.ResourceSlice;
import java.io.IOException;
import java.math.BigDecimal;
import java.util.List;
import java.util.Locale;
import java.util.Optional;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;

/** Claims and slots on the same GPUs: neither gets what the other has. */
class ClaimsBesideSlotsTest {
  private TestNode node;
  private StrictDevices devices;
  private NodeAgent agent;

  @BeforeEach
  void open() throws Exception {
    node = new TestNode();
    devices = node.devices();
    agent = node.agent();
    node.kubelet.register();
    TestNode.await("registered", () -> devices.registrations.get() == 1);
    assertThat(devices.connect()).hasSize(8);
    TestNode.await("all of the GPU is offered", () -> offered("share").equals(Optional.of("100")));
  }

  @AfterEach
  void close() throws IOException {
    agent.close();
    devices.close();
    node.close();
  }

  /** What kube-scheduler may allocate of the first GPU. */
  private Optional<String> offered(String capacity) {
    ResourceSlice slice =
        node.api.resources(ResourceSlice.class).withName(TestNode.NAME + "-vgpu.dev").get();
    return Optional.ofNullable(slice).stream()
        .flatMap(one -> one.getSpec().getDevices().stream())
        .filter(one -> one.getName().equals(node.device(0)))
        .map(one -> one.getCapacity().get(capacity))
        .map(ClaimsBesideSlotsTest::valid)
        .findFirst();
  }

  /** The value, if the API server takes its policy. */
  private static String valid(DeviceCapacity capacity) {
    BigDecimal value = capacity.getValue().getNumericalAmount();
    CapacityRequestPolicyRange range = capacity.getRequestPolicy().getValidRange();
    BigDecimal least = range.getMin().getNumericalAmount();
    assertThat(range.getMax().getNumericalAmount()).isBetween(least, value);
    if (range.getStep() != null) {
      assertThat(least.add(range.getStep().getNumericalAmount())).isLessThanOrEqualTo(value);
    }
    return capacity.getValue().toString();
  }

  private void start(String pod, String slot, String reservation) {
    Pod ignored = node.pod(pod, reservation);
    assertThat(devices.admit(pod, "main", slot)).isNotEmpty();
    devices.preStart(slot);
  }

  private void end(String pod, String slot) {
    devices.ended(pod, slot);
    node.delete(pod);
  }

  @Test
  void theSliceOffersWhatSlotsLeave() throws Exception {
    String all = offered("memory").orElseThrow();
    long mebibytes = node.pool.gpus().get(0).usableMemory().bytes() >> 20;
    start("a", "slot-1", node.reservation(60, "1Gi"));
    TestNode.await("less is offered", () -> offered("share").equals(Optional.of("40")));
    assertThat(offered("memory")).hasValue(mebibytes - 1024 + "Mi");
    start("b", "slot-2", node.reservation(40, "1Gi"));
    TestNode.await("nothing is offered", () -> offered("share").isEmpty());
    end("a", "slot-1");
    end("b", "slot-2");
    TestNode.await("all is offered again", () -> offered("share").equals(Optional.of("100")));
    assertThat(offered("memory")).hasValue(all);
  }

  @Test
  void theLastPercentAndTheLastMebibyteAreOfferedToo() throws Exception {
    long mebibytes = node.pool.gpus().get(0).usableMemory().bytes() >> 20;
    start("a", "slot-1", node.reservation(99, mebibytes - 1 + "Mi"));
    TestNode.await("little is offered", () -> offered("share").equals(Optional.of("1")));
    assertThat(offered("memory")).hasValue("1Mi");
  }

  @Test
  void aWholeGpuOfASlotIsNotOffered() throws Exception {
    String whole =
        String.format(
            Locale.ROOT,
            "{\"main\":{\"gpu\":\"%s\",\"whole\":true}}",
            node.pool.gpus().get(0).id());
    start("a", "slot-1", whole);
    TestNode.await("nothing is offered", () -> offered("share").isEmpty());
    Claim claim = node.create(ClaimJson.allocated("late", node.device(0), 1, "1Mi"));
    assertThat(node.kubelet.askToPrepare(claim).getError()).contains("team/late");
    assertThat(node.pool.leases()).hasSize(1);
  }

  /** kube-scheduler and vgpu's scheduler gave out the same GPU at the same moment. */
  @Test
  void whoComesSecondIsToldWhy() throws Exception {
    start("a", "slot-1", node.reservation(60, "1Gi"));
    Claim claim = node.create(ClaimJson.allocated("second", node.device(0), 60, "1Gi"));
    assertThat(node.kubelet.askToPrepare(claim).getError())
        .contains("team/second", "120 percent of gpu=" + node.pool.gpus().get(0).id());
    assertThat(node.pool.leases()).hasSize(1);
    TestNode.await("less is offered", () -> offered("share").equals(Optional.of("40")));
    end("a", "slot-1");
    TestNode.await("given back", () -> node.pool.leases().isEmpty());
    TestNode.await("all is offered again", () -> offered("share").equals(Optional.of("100")));
    List<Device> ignored = node.kubelet.prepare(claim);

    Pod unused = node.pod("b", node.reservation(60, "1Gi"));
    assertThat(devices.admit("b", "main", "slot-2")).isNotEmpty();
    assertThatThrownBy(() -> devices.preStart("slot-2"))
        .hasMessageContaining("120 percent of gpu=" + node.pool.gpus().get(0).id());
    assertThat(node.pool.leases()).hasSize(1);
    assertThat(offered("share")).as("claims do not change what is offered").hasValue("100");
  }
}
