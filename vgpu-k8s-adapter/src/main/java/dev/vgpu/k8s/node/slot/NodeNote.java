package dev.vgpu.k8s.node.slot;

import com.fasterxml.jackson.core.JsonProcessingException;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.JsonNodeFactory;
import com.fasterxml.jackson.databind.node.ObjectNode;
import dev.vgpu.GpuPool;
import dev.vgpu.k8s.names.Driver;
import dev.vgpu.k8s.names.KubeletResource;
import dev.vgpu.k8s.node.health.Condition;
import dev.vgpu.k8s.node.health.GpuConditions;
import dev.vgpu.request.GpuId;
import dev.vgpu.watch.PhysicalGpu;
import io.fabric8.kubernetes.client.KubernetesClient;
import io.fabric8.kubernetes.client.dsl.base.PatchContext;
import io.fabric8.kubernetes.client.dsl.base.PatchType;
import java.io.UncheckedIOException;
import java.util.HashMap;
import java.util.Map;
import java.util.stream.Collectors;
import org.jspecify.annotations.Nullable;

/**
 * Publishes the node's GPUs and the resources of its device plugin for the scheduler, in the
 * annotations {@link Driver#GPUS} and {@link Driver#RESOURCES} of the Node. Written when the GPUs
 * change, and when the Node has lost an annotation, for example because the Node was created anew.
 * Confined to one thread.
 */
final class NodeNote {
  private static final ObjectMapper JSON = new ObjectMapper();
  private static final long MIB = 1L << 20;

  /** After this many calls the annotation is read back instead of trusted. */
  private static final int TRUSTED_CALLS = 20;

  private final KubernetesClient api;
  private final GpuPool pool;
  private final GpuConditions conditions;
  private final String node;
  private final String resources;
  private Map<String, String> written = Map.of();
  private Map<String, String> notes = Map.of();
  private long notedChanges = -1;
  private int calls;

  NodeNote(SlotDriver.Parts parts) {
    this(
        parts.api(),
        parts.pool(),
        parts.conditions(),
        parts.node(),
        parts.offered().stream()
            .filter(one -> one != KubeletResource.SLOT)
            .map(KubeletResource::resource)
            .collect(Collectors.joining(",")));
  }

  NodeNote(
      KubernetesClient api, GpuPool pool, GpuConditions conditions, String node, String resources) {
    this.api = api;
    this.pool = pool;
    this.conditions = conditions;
    this.node = node;
    this.resources = resources;
  }

  /** GPUs that are lost or cut are left out: nothing can be reserved on them. */
  private String text() {
    Map<GpuId, Condition> now = conditions.now();
    GpuGroups groups = new GpuGroups(pool.gpus(), conditions);
    ArrayNode list = JsonNodeFactory.instance.arrayNode();
    for (PhysicalGpu gpu : pool.gpus()) {
      if (now.getOrDefault(gpu.id(), Condition.GOOD).isUsable()
          && gpu.unusableAsWhole().isEmpty()) {
        ObjectNode one = list.addObject();
        one.put("uuid", gpu.id().value())
            .put("model", gpu.model())
            .put("memory", gpu.usableMemory().bytes() / MIB + "Mi");
        groups.of(gpu.id()).ifPresent(group -> one.put("group", group));
      }
    }
    return list.toString();
  }

  /**
   * Writes the annotations if they have changed.
   *
   * @throws io.fabric8.kubernetes.client.KubernetesClientException if the API server rejects it;
   *     may be tried again
   */
  void publish() {
    long changes = conditions.changes();
    if (changes != notedChanges) {
      notes = Map.of(Driver.GPUS, text(), Driver.RESOURCES, resources);
      notedChanges = changes;
    }
    if (++calls % TRUSTED_CALLS == 0) {
      written = present();
    }
    if (!written.entrySet().containsAll(notes.entrySet())) {
      ObjectNode patch = JsonNodeFactory.instance.objectNode();
      ObjectNode annotations = patch.putObject("metadata").putObject("annotations");
      notes.forEach(annotations::put);
      Object ignored =
          api.nodes().withName(node).patch(PatchContext.of(PatchType.JSON_MERGE), patch.toString());
      written = notes;
    }
  }

  /** A Node names all images that its runtime has, so the client's class of Nodes costs more. */
  private Map<String, String> present() {
    @Nullable String text = api.raw("/api/v1/nodes/" + node);
    if (text == null) {
      return Map.of();
    }
    Map<String, String> present = new HashMap<>();
    try {
      JSON.readTree(text)
          .at("/metadata/annotations")
          .properties()
          .forEach(one -> present.put(one.getKey(), one.getValue().asText()));
    } catch (JsonProcessingException e) {
      throw new UncheckedIOException(e);
    }
    return present;
  }
}
