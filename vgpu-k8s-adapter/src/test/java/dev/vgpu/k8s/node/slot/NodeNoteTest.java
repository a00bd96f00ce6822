package dev.vgpu.k8s.node.slot;

import static org.assertj.core.api.Assertions.assertThat;

import com.fasterxml.jackson.core.JsonProcessingException;
import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import dev.vgpu.k8s.names.Driver;
import dev.vgpu.k8s.node.MockApi;
import dev.vgpu.k8s.node.health.GpuConditions;
import dev.vgpu.k8s.node.health.MockedGpus;
import dev.vgpu.watch.GpuHealth;
import dev.vgpu.watch.GpuReading.NvLink;
import io.fabric8.kubernetes.api.model.NodeBuilder;
import io.fabric8.kubernetes.client.KubernetesClient;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;

/** What the scheduler is told of a node's GPUs. */
class NodeNoteTest {
  private static final String[] GPUS = {"GPU-0", "GPU-1", "GPU-2", "GPU-3"};

  private final MockedGpus gpus = new MockedGpus(GPUS);
  private final GpuConditions conditions = new GpuConditions(gpus.pool);
  private MockApi mock;
  private KubernetesClient api;
  private NodeNote note;

  @BeforeEach
  void open() {
    mock = new MockApi();
    api = mock.client();
    api.resource(new NodeBuilder().withNewMetadata().withName("n").endMetadata().build()).create();
    note = new NodeNote(api, gpus.pool, conditions, "n", "");
  }

  @AfterEach
  void close() {
    api.close();
    mock.close();
  }

  private JsonNode told() throws JsonProcessingException {
    conditions.read();
    note.publish();
    return new ObjectMapper()
        .readTree(api.nodes().withName("n").get().getMetadata().getAnnotations().get(Driver.GPUS));
  }

  private static List<String> each(JsonNode list, String field) {
    List<String> values = new ArrayList<>();
    list.forEach(one -> values.add(one.path(field).asText()));
    return values;
  }

  private static NvLink to(String peer) {
    return new NvLink(0, true, Optional.of(peer));
  }

  @Test
  void whatCannotBeUsedIsLeftOutUntilItIsBack() throws Exception {
    assertThat(each(told(), "uuid")).containsExactly(GPUS);
    gpus.is("GPU-0", GpuHealth.LOST);
    gpus.is("GPU-1", GpuHealth.DEGRADED);
    gpus.reads("GPU-2", Map.of("mig_mode", "on"));
    assertThat(each(told(), "uuid")).containsExactly("GPU-1", "GPU-3");
    gpus.is("GPU-0", GpuHealth.HEALTHY);
    gpus.reads("GPU-2", Map.of("mig_mode", "off"));
    assertThat(each(told(), "uuid")).containsExactly(GPUS);
  }

  @Test
  void groupsAreNumaNodesWithoutNvLink() throws Exception {
    assertThat(told().get(0).has("group")).as("unknown").isFalse();
    for (int i = 0; i < GPUS.length; i++) {
      gpus.reads(GPUS[i], Map.of("numa_node", Integer.toString(i / 2)));
    }
    assertThat(each(told(), "group")).containsExactly("0", "0", "1", "1");
  }

  @Test
  void groupsAreTheGpusThatBridgesConnect() throws Exception {
    gpus.reads("GPU-0", Map.of("numa_node", "0"), to("GPU-2"));
    gpus.reads("GPU-1", Map.of("numa_node", "0"), new NvLink(0, false, Optional.of("GPU-0")));
    gpus.reads("GPU-2", Map.of("numa_node", "1"), to("GPU-0"));
    gpus.reads("GPU-3", Map.of("numa_node", "1"), to("GPU-1"));
    assertThat(each(told(), "group")).containsExactly("0", "1", "0", "1");
  }

  @Test
  void switchesConnectAllGpusThatHaveThem() throws Exception {
    gpus.reads("GPU-1", Map.of(), to("switch"));
    gpus.reads("GPU-3", Map.of(), to("switch"), to("another device"));
    assertThat(each(told(), "group")).containsExactly("0", "1", "2", "1");
  }

  @Test
  void switchesConnectNoGpusOfOtherCliques() throws Exception {
    for (int i = 0; i < GPUS.length; i++) {
      gpus.reads(GPUS[i], Map.of("clique", "cluster." + i % 2), to("switch"));
    }
    assertThat(each(told(), "group")).containsExactly("0", "1", "0", "1");
  }
}
