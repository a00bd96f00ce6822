package dev.vgpu.k8s.scheduler.line;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import dev.vgpu.fleet.placement.Policies;
import dev.vgpu.k8s.names.Driver;
import dev.vgpu.k8s.names.KubeletResource;
import dev.vgpu.k8s.names.PodRequest;
import dev.vgpu.k8s.names.PodRequests;
import dev.vgpu.k8s.node.NodeAgent;
import dev.vgpu.k8s.node.StrictDevices;
import dev.vgpu.k8s.node.TestNode;
import dev.vgpu.k8s.proto.deviceplugin.Device;
import dev.vgpu.k8s.scheduler.Pods;
import dev.vgpu.request.MemorySize;
import dev.vgpu.watch.GpuLease;
import io.fabric8.kubernetes.api.model.Node;
import io.fabric8.kubernetes.api.model.NodeBuilder;
import io.fabric8.kubernetes.api.model.Pod;
import io.fabric8.kubernetes.api.model.PodBuilder;
import io.fabric8.kubernetes.api.model.Quantity;
import io.fabric8.kubernetes.client.utils.KubernetesSerialization;
import java.io.IOException;
import java.io.InputStream;
import java.util.ArrayList;
import java.util.Collections;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.stream.Stream;
import org.assertj.core.data.Offset;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/**
 * Other systems' manifests, unchanged: the scheduler reserves, the device plugin takes when the
 * container starts, and the hook enforces, on emulated GPUs.
 */
class PodsOfOthersIT {
  private static final List<KubeletResource> OTHERS =
      Stream.of(KubeletResource.values()).filter(one -> one != KubeletResource.SLOT).toList();
  private static final long PIECE = 64L << 20;

  private TestNode node;
  private StrictDevices devices;
  private NodeAgent agent;
  private PodLine line;

  @BeforeEach
  void open() throws Exception {
    node = new TestNode();
    devices = node.devices();
    agent = node.agent(OTHERS);
    TestNode.await("registered", () -> devices.registrations.get() == OTHERS.size() + 1);
    TestNode.await("the GPUs are published", () -> NodeGpus.of(nodeOfApi()).isPresent());
    line = new PodLine(Policies.OURS);
    line.begin(List.of(nodeOfApi()), List.of(), Map.of(), 0);
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

  /** The kubelet's part: a node's allocatable resources are the listed devices. */
  private void count() {
    Map<String, Quantity> listed = new HashMap<>();
    for (KubeletResource one : KubeletResource.values()) {
      int count = devices.connect(one.resource()).size();
      listed.put(one.resource(), new Quantity(Integer.toString(count)));
    }
    node.api
        .nodes()
        .withName(TestNode.NAME)
        .editStatus(
            one ->
                new NodeBuilder(one).withNewStatus().withAllocatable(listed).endStatus().build());
    line.nodes(List.of(nodeOfApi()), 0);
  }

  private Node nodeOfApi() {
    return node.api.nodes().withName(TestNode.NAME).get();
  }

  private Pod create(String manifest) {
    InputStream file = PodsOfOthersIT.class.getResourceAsStream("/manifests/" + manifest + ".yaml");
    Pod pod = new KubernetesSerialization().unmarshal(file, Pod.class);
    return create(new PodBuilder(pod).editMetadata().withNamespace("team").endMetadata().build());
  }

  /** Creates a pod, and binds it where the scheduler says. */
  private Pod create(Pod pod) {
    Pod made = node.api.resource(pod).create();
    Answer early = line.filter(made, Set.of(TestNode.NAME), 1, 0);
    assertThat(early.text()).contains("no node's device plugin serves it");
    count();
    assertThat(line.drain()).as("it is woken").hasSize(1);
    Answer answer = line.filter(made, Set.of(TestNode.NAME), 1, 0);
    assertThat(answer).isEqualTo(Answer.node(TestNode.NAME));
    assertThat(line.arrive(made.getMetadata().getUid(), TestNode.NAME).join()).isEmpty();
    Map<String, String> notes = line.annotations(made.getMetadata().getUid(), 0);
    return node.api.resource(Pods.bound(made, TestNode.NAME, notes)).update();
  }

  /** The last devices, as many as the container asks for, the highest first. */
  private List<String> pick(Pod pod, String resource) {
    int amount =
        pod.getSpec().getContainers().stream()
            .filter(one -> one.getName().equals("main"))
            .map(one -> one.getResources().getLimits().get(resource))
            .findFirst()
            .orElseThrow()
            .getNumericalAmount()
            .intValueExact();
    List<String> all =
        new ArrayList<>(devices.connect(resource).stream().map(Device::getID).toList());
    Collections.reverse(all);
    return all.subList(0, amount);
  }

  private JsonNode hoard(String cdi) throws IOException, InterruptedException {
    Process process = node.program(cdi, "hoard", "--chunk", Long.toString(PIECE), "--json");
    JsonNode said = new ObjectMapper().readTree(process.getInputStream().readAllBytes());
    process.waitFor();
    return said;
  }

  @ParameterizedTest
  @CsvSource({
    "coming-from/gpushare, aliyun.com/gpu-mem",
    "coming-from/gpu-manager, tencent.com/vcuda-core",
    "coming-from/qgpu, tke.cloud.tencent.com/qgpu-memory",
    "coming-from/volcano, volcano.sh/vgpu-number",
    "hami-share, nvidia.com/gpu",
    "kai-share, vgpu.dev/slot",
    "kai-named, vgpu.dev/slot",
    "koordinator, koordinator.sh/gpu-core"
  })
  void aManifestIsEnforced(String manifest, String resource) throws Exception {
    Pod pod = create(manifest);
    String name = pod.getMetadata().getName();
    List<String> ids = pick(pod, resource);
    String cdi = devices.admit(name, "main", resource, ids);
    assertThat(node.pool.leases()).isEmpty();
    List<String> inOrder = new ArrayList<>(ids);
    Collections.reverse(inOrder);
    devices.preStart(resource, inOrder);

    PodRequest asked = PodRequests.of(pod).orElseThrow();
    assertThat(node.pool.leases()).hasSize(1);
    GpuLease lease = node.pool.leases().get(0);
    assertThat(lease.request().computePercent().orElse(0)).isEqualTo(asked.sharePercent());
    assertThat(lease.request().policy()).isEqualTo(asked.policy());
    assertThat(lease.request().preemptionClass()).isEqualTo(asked.preemptionClass());
    MemorySize card = node.pool.gpus().get(0).usableMemory();
    double part = card.bytes() * asked.memoryPercent() / 100;
    long quota = Math.max(asked.memory().bytes(), (long) part);
    assertThat(lease.request().memory().bytes()).isCloseTo(quota, within(1 << 20));
    JsonNode said = hoard(cdi);
    assertThat(said.path("refusal").asText()).isEqualTo("CUDA_ERROR_OUT_OF_MEMORY");
    assertThat(said.path("total_before").asLong()).isEqualTo(lease.request().memory().bytes());
    assertThat(said.path("bytes").asLong()).isBetween(quota - 3 * PIECE, quota);

    devices.ended(name, ids);
    node.delete(name);
    TestNode.await("given back", () -> node.pool.leases().isEmpty());
    TestNode.await("not described any more", () -> node.kubelet.edits(cdi).isEmpty());
  }

  @Test
  void aWholeGpuOfQgpuIsOneVirtualGpu() throws Exception {
    String resource = "tke.cloud.tencent.com/qgpu-core";
    Pod pod = create("qgpu-whole");
    List<String> ids = pick(pod, resource);
    String cdi = devices.admit("qgpu-whole", "main", resource, ids);
    devices.preStart(resource, ids);
    assertThat(node.pool.leases()).hasSize(1);
    GpuLease lease = node.pool.leases().get(0);
    MemorySize card = node.pool.gpus().get(0).usableMemory();
    assertThat(lease.request().computePercent()).hasValue(100);
    assertThat(lease.request().memory()).isEqualTo(card);
    assertThat(hoard(cdi).path("total_before").asLong()).isEqualTo(card.bytes());
  }

  /** HAMi's words with a number. */
  @Test
  void aNumberOfGpusIsOneVirtualGpuOnAll() throws Exception {
    String resource = "nvidia.com/gpu";
    Map<String, String> asked =
        Map.of(resource, "2", "nvidia.com/gpumem", "2048", "nvidia.com/gpucores", "30");
    Pod made =
        create(
            new PodBuilder(Pods.pod("two", Map.of(), asked))
                .editMetadata()
                .withNamespace("team")
                .endMetadata()
                .build());
    List<String> ids = pick(made, resource);
    String cdi = devices.admit("two", "main", resource, ids);
    devices.preStart(resource, ids);
    assertThat(node.pool.leases()).hasSize(1);
    GpuLease lease = node.pool.leases().get(0);
    assertThat(lease.gpus()).hasSize(2).doesNotHaveDuplicates();
    assertThat(lease.request().computePercent()).hasValue(30);
    assertThat(lease.request().memory()).isEqualTo(MemorySize.ofGibibytes(2));
    JsonNode said = hoard(cdi);
    assertThat(said.path("refusal").asText()).isEqualTo("CUDA_ERROR_OUT_OF_MEMORY");
    assertThat(said.path("bytes").asLong()).isBetween((2L << 30) - 3 * PIECE, 2L << 30);
    devices.ended("two", ids);
    node.delete("two");
    TestNode.await("given back", () -> node.pool.leases().isEmpty());
  }

  /** The kubelet calls both plugins for the one container. */
  @Test
  void aPartOfAGpuOfQgpuComesWithItsMemoryAlone() throws Exception {
    String core = "tke.cloud.tencent.com/qgpu-core";
    String memory = "tke.cloud.tencent.com/qgpu-memory";
    Pod pod = create("qgpu-share");
    List<String> cores = pick(pod, core);
    List<String> gibibytes = pick(pod, memory);
    assertThat(devices.allocate("qgpu-share", "main", core, cores)).isEmpty();
    String cdi = devices.admit("qgpu-share", "main", memory, gibibytes);
    devices.preStart(core, cores);
    assertThat(node.pool.leases()).isEmpty();
    devices.preStart(memory, gibibytes);
    assertThat(node.pool.leases()).hasSize(1);
    GpuLease lease = node.pool.leases().get(0);
    assertThat(lease.request().computePercent()).hasValue(30);
    assertThat(hoard(cdi).path("total_before").asLong()).isEqualTo(5L << 30);
  }

  private static Offset<Long> within(long bytes) {
    return Offset.offset(bytes);
  }

  /** One container would be under two virtual GPUs. */
  @Test
  void aContainerWithTwoOfTheResourcesIsRefused() {
    Map<String, String> both = Map.of("aliyun.com/gpu-mem", "1", Driver.SLOT, "1");
    Pod pod = Pods.pod("both", Map.of(), both);
    Pod made =
        create(new PodBuilder(pod).editMetadata().withNamespace("team").endMetadata().build());
    List<String> ids = pick(made, Driver.SLOT);
    String cdi = devices.admit("both", "main", Driver.SLOT, ids);
    assertThatThrownBy(() -> devices.preStart(Driver.SLOT, ids))
        .hasMessageContaining("one resource")
        .hasMessageContaining("aliyun.com/gpu-mem");
    assertThat(node.pool.leases()).isEmpty();
    assertThat(node.kubelet.edits(cdi)).isEmpty();
  }

  /** Nothing would ever give it back. */
  @Test
  void aSlotOfAResourceThatIsNotOfferedAnyMoreIsGivenBack() throws Exception {
    Pod pod = create("coming-from/gpushare");
    List<String> ids = pick(pod, "aliyun.com/gpu-mem");
    String cdi = devices.admit("serve", "main", "aliyun.com/gpu-mem", ids);
    devices.preStart("aliyun.com/gpu-mem", ids);
    assertThat(agent.holdings().all()).hasSize(1);
    agent.close();
    agent = node.agent(List.of());
    assertThat(agent.holdings().all()).isEmpty();
    assertThat(node.kubelet.edits(cdi)).isEmpty();
  }
}
