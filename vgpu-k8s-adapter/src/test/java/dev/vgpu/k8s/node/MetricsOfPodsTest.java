package dev.vgpu.k8s.node;

import static java.nio.charset.StandardCharsets.UTF_8;
import static org.assertj.core.api.Assertions.assertThat;

import dev.vgpu.k8s.proto.dra.Claim;
import dev.vgpu.k8s.proto.dra.Device;
import io.fabric8.kubernetes.api.model.Pod;
import java.io.IOException;
import java.net.URI;
import java.util.List;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;

/** Whose a claim is, as the metrics say; and what they say of the devices. */
class MetricsOfPodsTest {
  private TestNode node;
  private StrictDevices devices;
  private NodeAgent agent;
  private Claim claim;
  private List<Device> prepared;

  @BeforeEach
  void open() throws Exception {
    node = new TestNode();
    devices = node.devices();
    agent = node.agent();
    node.kubelet.register();
    claim = node.create(ClaimJson.allocated("gpu-of-a", node.device(1), 30, "1Gi"));
    prepared = node.kubelet.prepare(claim);
  }

  @AfterEach
  void close() throws IOException {
    agent.close();
    devices.close();
    node.close();
  }

  private List<String> series(String name) throws IOException {
    URI uri = URI.create("http://localhost:" + agent.metricsPort() + "/metrics");
    String text = new String(uri.toURL().openStream().readAllBytes(), UTF_8);
    return text.lines().filter(line -> line.startsWith(name + "{")).toList();
  }

  private String share() throws IOException {
    List<String> found = series("vgpu_share_percent");
    assertThat(found).hasSize(1);
    return found.get(0);
  }

  @Test
  void aClaimIsOfTheContainerThatTheKubeletNames() throws Exception {
    assertThat(share()).as("no container yet").contains("namespace=\"team\",pod=\"\"");
    Pod pod = node.pod("a", "{}");
    devices.listClaim("a", "main", claim, prepared);
    assertThat(share())
        .contains(
            "namespace=\"team\",pod=\"a\",container=\"main\",pod_uid=\""
                + pod.getMetadata().getUid()
                + "\"")
        .endsWith(" 30.0");

    Pod second = node.pod("b", "{}");
    devices.listClaim("b", "other", claim, prepared);
    assertThat(share())
        .as("both use the claim")
        .containsAnyOf("pod=\"a,b\"", "pod=\"b,a\"")
        .contains(second.getMetadata().getUid(), pod.getMetadata().getUid());

    Claim other = claim.toBuilder().setName("another").build();
    devices.listClaim("b", "other", other, prepared);
    assertThat(share()).contains("pod=\"a\",container=\"main\"");
  }

  /** The kubelet answers a hundred times a second, and ten times at once. */
  @Test
  void theKubeletIsAskedOnceHoweverManyClaimsThereAre() throws Exception {
    Pod pod = node.pod("a", "{}");
    devices.listClaim("a", "main", claim, prepared);
    for (int i = 0; i < 29; i++) {
      Claim more = node.create(ClaimJson.allocated("more-" + i, node.device(1), 1, "64Mi"));
      devices.listClaim("more-" + i, "main", more, node.kubelet.prepare(more));
    }
    int before = devices.lists.get();
    assertThat(series("vgpu_share_percent")).hasSize(30);
    assertThat(devices.lists.get() - before).isEqualTo(1);
    devices.isTooBusy = true;
    assertThat(series("vgpu_share_percent"))
        .as("what it said last")
        .hasSize(30)
        .anyMatch(line -> line.contains("pod_uid=\"" + pod.getMetadata().getUid() + "\""))
        .noneMatch(line -> line.contains("pod=\"\""));
  }

  @Test
  void eachDeviceHasItsMemoryAndDcgmsLabels() throws Exception {
    List<String> total = series("vgpu_device_memory_total_bytes");
    assertThat(total).hasSize(2);
    assertThat(total.get(1))
        .startsWith(
            "vgpu_device_memory_total_bytes{gpu=\"1\",UUID=\""
                + node.pool.gpus().get(1).id()
                + "\",pci_bus_id=\"00000000:02:00.0\",device=\"nvidia1\",modelName=\"")
        .endsWith(" " + (double) (4L << 30));
    assertThat(series("vgpu_device_memory_used_bytes")).hasSize(2);
  }
}
