package dev.vgpu.k8s.node.dra;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ObjectNode;
import com.fasterxml.jackson.databind.node.TextNode;
import dev.vgpu.k8s.names.Driver;
import dev.vgpu.request.GpuId;
import io.fabric8.kubernetes.api.model.Node;
import io.fabric8.kubernetes.api.model.ObjectMetaBuilder;
import io.fabric8.kubernetes.api.model.OwnerReferenceBuilder;
import io.fabric8.kubernetes.api.model.Quantity;
import io.fabric8.kubernetes.api.model.resource.v1.Device;
import io.fabric8.kubernetes.api.model.resource.v1.ResourceSlice;
import io.fabric8.kubernetes.api.model.resource.v1.ResourceSliceSpec;
import io.fabric8.kubernetes.client.KubernetesClient;
import io.fabric8.kubernetes.client.KubernetesClientException;
import io.fabric8.kubernetes.client.dsl.Resource;
import io.fabric8.kubernetes.client.utils.Serialization;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Keeps the node's ResourceSlices in agreement with its GPUs. Writes only changes, and then all of
 * them, because the slices of a pool count only if they are of one generation. The slices are owned
 * by the Node, and deleted with it. Confined to one thread at a time.
 */
final class SlicePublisher {
  private static final Logger log = LoggerFactory.getLogger(SlicePublisher.class);
  private static final ObjectMapper JSON = new ObjectMapper();
  private static final int INVALID = 422;

  /** Of this many calls without a change, one reads the slices back; the others trust them. */
  private static final int TRUSTED_CALLS = 2;

  private final KubernetesClient api;
  private final NodeDevices devices;
  private final String node;

  /** Whether the devices have conditions for gangs; not if the API server drops them. */
  private boolean isConditional;

  /** Whether parts of GPUs are devices; not if the API server does not take their counters. */
  private boolean hasParts = true;

  /** What slots had when the slices were written. */
  private Map<GpuId, NodeDevices.Taken> taken = Map.of();

  /** How many slices there are; 0 if that is not known yet. */
  private int count;

  /** The slices as the API server had them when they were as intended, and what was intended. */
  private List<String> right = List.of();

  private List<ObjectNode> intended = List.of();

  /** The number of calls since then. */
  private int calls;

  SlicePublisher(KubernetesClient api, NodeDevices devices, String node, boolean isConditional) {
    this.api = api;
    this.devices = devices;
    this.node = node;
    this.isConditional = isConditional;
  }

  /**
   * Writes the slices if they differ from their intended state.
   *
   * @throws KubernetesClientException if the API server rejects them; may be tried again
   * @throws IllegalStateException if the cluster has no such node
   */
  void publish() {
    Map<GpuId, NodeDevices.Taken> before = devices.taken();
    write();
    taken = before;
  }

  /** Writes them if slots have something else than when they were written last. */
  void publishTaken() {
    if (!taken.equals(devices.taken())) {
      publish();
    }
  }

  private void write() {
    if (count == 0) {
      count = count();
    }
    List<ObjectNode> wanted = devices.slices(isConditional, hasParts, count);
    if (wanted.equals(intended) && ++calls % TRUSTED_CALLS != 0) {
      return;
    }
    List<ObjectNode> before = intended;
    intended = List.of(); // a failure is tried again at the next call
    List<String> texts = new ArrayList<>();
    for (int i = 0; i < wanted.size(); i++) {
      @Nullable String text = api.raw("/apis/resource.k8s.io/v1/resourceslices/" + name(i));
      texts.add(text == null ? "" : text);
    }
    // Usually nothing has changed, which costs less to see in the texts.
    if (texts.equals(right) && wanted.equals(before)) {
      intended = before;
      return;
    }
    List<Optional<ResourceSlice>> present = new ArrayList<>();
    for (String text : texts) {
      present.add(
          text.isEmpty()
              ? Optional.empty()
              : Optional.of(Serialization.unmarshal(text, ResourceSlice.class)));
    }
    if (isSame(present, wanted)) {
      right = texts;
      intended = wanted;
      calls = 0;
      return;
    }
    String owner = owner();
    long generation = 1;
    for (Optional<ResourceSlice> one : present) {
      generation = Math.max(generation, one.map(SlicePublisher::generation).orElse(0L) + 1);
    }
    for (int i = 0; i < wanted.size(); i++) {
      NodeDevices.pool(wanted.get(i)).put("generation", generation);
      if (!write(i, slice(i, wanted.get(i), owner), present.get(i))) {
        write(); // without parts
        return;
      }
    }
  }

  /** Slices are not deleted: those that are not needed any more become empty. */
  private int count() {
    int found = 1;
    while (place(found).get() != null) {
      found++;
    }
    return found;
  }

  private Resource<ResourceSlice> place(int number) {
    return api.resources(ResourceSlice.class).withName(name(number));
  }

  private static long generation(ResourceSlice slice) {
    return slice.getSpec().getPool().getGeneration();
  }

  private static boolean isSame(List<Optional<ResourceSlice>> present, List<ObjectNode> wanted) {
    for (int i = 0; i < wanted.size(); i++) {
      if (present.get(i).isEmpty()) {
        return false;
      }
      JsonNode before = JSON.valueToTree(present.get(i).get().getSpec());
      if (!comparable(before).equals(comparable(withModelsForm(wanted.get(i))))
          || generation(present.get(i).get()) != generation(present.get(0).orElseThrow())) {
        return false;
      }
    }
    return true;
  }

  /** {@return whether the slice was taken with its counters} */
  private boolean write(int number, ResourceSlice next, Optional<ResourceSlice> before) {
    ResourceSlice written;
    try {
      if (before.isPresent()) {
        next.getMetadata().setResourceVersion(before.get().getMetadata().getResourceVersion());
        written = api.resource(next).update();
      } else {
        written = api.resource(next).create();
      }
    } catch (KubernetesClientException e) {
      if (e.getCode() != INVALID || !hasCounters(next)) {
        throw e;
      }
      return giveUpParts("refuses", String.valueOf(e.getMessage()));
    }
    count = Math.max(count, number + 1);
    checkConditions(written);
    return hasCounters(written) == hasCounters(next)
        || giveUpParts("drops", "the slice came back without them");
  }

  private static boolean hasCounters(ResourceSlice slice) {
    List<Device> devices =
        slice.getSpec().getDevices(); // null from a 1.34 server if there are none
    return !slice.getSpec().getSharedCounters().isEmpty()
        || (devices != null
            && devices.stream().anyMatch(one -> !one.getConsumesCounters().isEmpty()));
  }

  /** Without counters, kube-scheduler would allocate parts that overlap. */
  private boolean giveUpParts(String what, String why) {
    hasParts = false;
    log.warn(
        "the API server {} shared counters, so GPUs whose MIG mode is on are not offered: {}; it"
            + " needs Kubernetes 1.36 with the feature gate DRAPartitionableDevices, and this"
            + " process a restart then",
        what,
        why);
    return false;
  }

  /** Otherwise the slice would differ from its intended state forever. */
  private void checkConditions(ResourceSlice written) {
    JsonNode all = JSON.valueToTree(written.getSpec()).path("devices");
    if (isConditional && !all.isEmpty() && all.at("/0").path(NodeDevices.CONDITIONS).isEmpty()) {
      isConditional = false;
      log.warn(
          "the API server drops binding conditions, so gangs with claims are not bound together;"
              + " it needs the feature gates DRADeviceBindingConditions and"
              + " DRAResourceClaimDeviceStatus, and this process a restart then");
    }
  }

  private String name(int number) {
    return node + "-" + Driver.NAME + (number == 0 ? "" : "-" + number);
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
    for (JsonNode set : copy.path(PartDevices.SETS)) {
      set.path("counters").forEach(SlicePublisher::withPlainNumbers);
    }
    for (JsonNode device : copy.path("devices")) {
      device.path("capacity").forEach(SlicePublisher::withPlainNumbers);
      for (JsonNode taken : device.path(PartDevices.TAKEN)) {
        taken.path("counters").forEach(SlicePublisher::withPlainNumbers);
      }
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

  /** {@return the UID of the Node} */
  private String owner() {
    Node owner = api.nodes().withName(node).get();
    if (owner == null) {
      throw new IllegalStateException(
          "the cluster has no such node: " + node + "; give --node-name, or NODE_NAME");
    }
    return owner.getMetadata().getUid();
  }

  private ResourceSlice slice(int number, ObjectNode spec, String owner) {
    ResourceSlice slice = new ResourceSlice();
    slice.setMetadata(
        new ObjectMetaBuilder()
            .withName(name(number))
            .withOwnerReferences(
                new OwnerReferenceBuilder()
                    .withApiVersion("v1")
                    .withKind("Node")
                    .withName(node)
                    .withUid(owner)
                    .build())
            .build());
    slice.setSpec(JSON.convertValue(spec, ResourceSliceSpec.class));
    return slice;
  }
}
