package dev.vgpu.k8s.node;

import static org.assertj.core.api.Assertions.assertThat;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import io.fabric8.kubernetes.api.model.resource.v1.ResourceSlice;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.junit.jupiter.api.Test;

/** What the node's ResourceSlice tells the cluster about its GPUs. */
class SlicesOfTheNodeTest {
  private static JsonNode published(TestNode node) throws InterruptedException {
    TestNode.await("a slice", () -> !slices(node).isEmpty());
    assertThat(slices(node)).hasSize(1);
    return new ObjectMapper().valueToTree(slices(node).get(0));
  }

  private static List<ResourceSlice> slices(TestNode node) {
    return node.api.resources(ResourceSlice.class).list().getItems();
  }

  @Test
  void eachGpuIsADeviceWithConsumableCapacity() throws Exception {
    try (TestNode node = new TestNode();
        NodeAgent agent = node.agent()) {
      assertThat(agent).isNotNull();
      JsonNode slice = published(node);
      assertThat(slice.at("/spec/driver").asText()).isEqualTo("vgpu.dev");
      assertThat(slice.at("/spec/nodeName").asText()).isEqualTo(TestNode.NAME);
      assertThat(slice.at("/metadata/ownerReferences/0/kind").asText()).isEqualTo("Node");
      assertThat(slice.at("/spec/devices")).hasSize(2);
      JsonNode device = slice.at("/spec/devices/1");
      assertThat(device.path("name").asText()).isEqualTo(node.device(1));
      assertThat(device.path("allowMultipleAllocations").asBoolean()).isTrue();
      assertThat(device.at("/capacity/share/value").asText()).isEqualTo("100");
      assertThat(device.at("/capacity/share/requestPolicy/validRange/min").asText()).isEqualTo("1");
      assertThat(device.at("/capacity/memory/value").asText()).endsWith("Mi");
      assertThat(device.at("/attributes/uuid/string").asText())
          .isEqualTo(node.pool.gpus().get(1).id().value());
      assertThat(device.at("/attributes/driverVersion/version").asText())
          .matches("\\d+\\.\\d+\\.\\d+");
      assertThat(device.has("taints") && !device.path("taints").isEmpty()).isFalse();
    }
  }

  /** kube-scheduler compares whole names, and a claim with another name would wait for ever. */
  @Test
  void thePolicyTakesTheSlicesCapacitiesAndNoOthers() throws Exception {
    Path policy = Path.of("deploy/base/parameters-policy.yaml");
    Matcher taken =
        Pattern.compile("asked\\.all\\(q, q\\.all\\(a, a\\.all\\(k, k in \\[(.*?)]")
            .matcher(Files.readString(policy));
    assertThat(taken.find()).isTrue();
    try (TestNode node = new TestNode();
        NodeAgent agent = node.agent()) {
      assertThat(agent).isNotNull();
      assertThat(published(node).at("/spec/devices/0/capacity").fieldNames())
          .toIterable()
          .containsExactlyInAnyOrder(taken.group(1).replace("'", "").split(", "));
    }
  }
}
