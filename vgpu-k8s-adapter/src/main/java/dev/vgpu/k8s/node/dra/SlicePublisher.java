package dev.vgpu.k8s.node.dra;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ObjectNode;
import com.fasterxml.jackson.databind.node.TextNode;
import dev.vgpu.GpuPool;
import dev.vgpu.k8s.Driver;
import dev.vgpu.k8s.node.health.GpuConditions;
import io.fabric8.kubernetes.api.model.Node;
import io.fabric8.kubernetes.api.model.ObjectMetaBuilder;
import io.fabric8.kubernetes.api.model.OwnerReferenceBuilder;
import io.fabric8.kubernetes.api.model.Quantity;
import io.fabric8.kubernetes.api.model.resource.v1.ResourceSlice;
import io.fabric8.kubernetes.api.model.resource.v1.ResourceSliceSpec;
import io.fabric8.kubernetes.client.KubernetesClient;
import io.fabric8.kubernetes.client.dsl.Resource;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Keeps the node's ResourceSlice in agreement with its GPUs. Writes only changes. The slice is
 * owned by the Node, and deleted with it. Confined to one thread at a time.
 */
final class SlicePublisher {
  private static final Logger log = LoggerFactory.getLogger(SlicePublisher.class);
  private static final ObjectMapper JSON = new ObjectMapper();

  private final KubernetesClient api;
  private final GpuPool pool;
  private final GpuConditions conditions;
  private final String node;

  /** Whether the devices have conditions for gangs; not if the API server drops them. */
  private boolean isConditional;

  SlicePublisher(
      KubernetesClient api,
      GpuPool pool,
      GpuConditions conditions,
      String node,
      boolean isConditional) {
    this.api = api;
    this.pool = pool;
    this.conditions = conditions;
    this.node = node;
    this.isConditional = isConditional;
  }

  /**
   * Writes the slice if it differs from its intended state.
   *
   * @throws io.fabric8.kubernetes.client.KubernetesClientException if the API server rejects it;
   *     may be tried again
   * @throws IllegalStateException if the cluster has no such node
   */
  void publish() {
    ObjectNode wanted = NodeDevices.spec(pool, conditions, node, isConditional);
    Resource<ResourceSlice> place = api.resources(ResourceSlice.class).withName(name());
    ResourceSlice present = place.get();
    if (present == null) {
      check(api.resource(slice(wanted, 1)).create());
      return;
    }
    JsonNode before = JSON.valueToTree(present.getSpec());
    if (!comparable(before).equals(comparable(withModelsForm(wanted)))) {
      ResourceSlice next = slice(wanted, before.path("pool").path("generation").asLong() + 1);
      next.getMetadata().setResourceVersion(present.getMetadata().getResourceVersion());
      check(api.resource(next).update());
    }
  }

  /** Otherwise the slice would differ from its intended state forever. */
  private void check(ResourceSlice written) {
    JsonNode devices = JSON.valueToTree(written.getSpec()).path("devices");
    if (isConditional
        && !devices.isEmpty()
        && devices.at("/0").path(NodeDevices.CONDITIONS).isEmpty()) {
      isConditional = false;
      log.warn(
          "the API server drops binding conditions, so gangs with claims are not bound together;"
              + " it needs the feature gates DRADeviceBindingConditions and"
              + " DRAResourceClaimDeviceStatus, and this process a restart then");
    }
  }

  private String name() {
    return node + "-" + Driver.NAME;
  }

  /** Numbers and quantities in the form that the API's objects use. */
  private static JsonNode withModelsForm(ObjectNode spec) {
    return JSON.valueToTree(JSON.convertValue(spec, ResourceSliceSpec.class));
  }

  /** Leaves out the generation and what the API server adds; quantities become plain numbers. */
  private static JsonNode comparable(JsonNode spec) {
    ObjectNode copy = spec.deepCopy();
    if (copy.path("pool") instanceof ObjectNode pool) {
      pool.remove("generation");
    }
    for (JsonNode device : copy.path("devices")) {
      device.path("capacity").forEach(SlicePublisher::withPlainNumbers);
      for (JsonNode taint : device.path("taints")) {
        if (taint instanceof ObjectNode one) {
          one.remove("timeAdded");
        }
      }
    }
    return copy;
  }

  /** The API server normalises quantities: 8192Mi comes back as 8Gi. */
  private static void withPlainNumbers(JsonNode node) {
    if (node instanceof ObjectNode object) {
      object
          .properties()
          .forEach(
              field -> {
                if (field.getValue().isTextual()) {
                  field.setValue(
                      TextNode.valueOf(
                          Quantity.parse(field.getValue().asText())
                              .getNumericalAmount()
                              .stripTrailingZeros()
                              .toPlainString()));
                } else {
                  withPlainNumbers(field.getValue());
                }
              });
    }
  }

  private ResourceSlice slice(ObjectNode spec, long generation) {
    Node owner = api.nodes().withName(node).get();
    if (owner == null) {
      throw new IllegalStateException(
          "the cluster has no such node: " + node + "; give --node-name, or NODE_NAME");
    }
    ((ObjectNode) spec.path("pool")).put("generation", generation);
    ResourceSlice slice = new ResourceSlice();
    slice.setMetadata(
        new ObjectMetaBuilder()
            .withName(name())
            .withOwnerReferences(
                new OwnerReferenceBuilder()
                    .withApiVersion("v1")
                    .withKind("Node")
                    .withName(node)
                    .withUid(owner.getMetadata().getUid())
                    .build())
            .build());
    slice.setSpec(JSON.convertValue(spec, ResourceSliceSpec.class));
    return slice;
  }
}
