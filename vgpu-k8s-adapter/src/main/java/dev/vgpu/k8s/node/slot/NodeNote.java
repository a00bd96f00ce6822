package dev.vgpu.k8s.node.slot;

import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.JsonNodeFactory;
import com.fasterxml.jackson.databind.node.ObjectNode;
import dev.vgpu.GpuHealth;
import dev.vgpu.GpuId;
import dev.vgpu.GpuPool;
import dev.vgpu.GpuState;
import dev.vgpu.PhysicalGpu;
import dev.vgpu.k8s.Driver;
import dev.vgpu.k8s.names.KubeletResource;
import io.fabric8.kubernetes.api.model.Node;
import io.fabric8.kubernetes.client.KubernetesClient;
import io.fabric8.kubernetes.client.dsl.base.PatchContext;
import io.fabric8.kubernetes.client.dsl.base.PatchType;
import java.util.Map;
import java.util.Set;
import java.util.stream.Collectors;

/**
 * Publishes the node's GPUs and the resources of its device plugin for the scheduler, in the
 * annotations {@link Driver#GPUS} and {@link Driver#RESOURCES} of the Node. Written when the GPUs
 * change, and when the Node has lost an annotation, for example because the Node was created anew.
 * Confined to one thread.
 */
final class NodeNote {
  private static final long MIB = 1L << 20;

  /** After this many calls the annotation is read back instead of trusted. */
  private static final int TRUSTED_CALLS = 10;

  private final KubernetesClient api;
  private final GpuPool pool;
  private final String node;
  private final String resources;
  private Map<String, String> written = Map.of();
  private int calls;

  NodeNote(SlotDriver.Parts parts) {
    this.api = parts.api();
    this.pool = parts.pool();
    this.node = parts.node();
    this.resources =
        parts.offered().stream()
            .filter(one -> one != KubeletResource.SLOT)
            .map(KubeletResource::resource)
            .collect(Collectors.joining(","));
  }

  /** Lost GPUs are left out: nothing can be reserved on them. */
  private String text() {
    Set<GpuId> lost =
        pool.states().stream()
            .filter(state -> state.health() == GpuHealth.LOST)
            .map(GpuState::gpu)
            .collect(Collectors.toSet());
    ArrayNode list = JsonNodeFactory.instance.arrayNode();
    for (PhysicalGpu gpu : pool.gpus()) {
      if (!lost.contains(gpu.id()) && gpu.unusableAsWhole().isEmpty()) {
        list.addObject()
            .put("uuid", gpu.id().value())
            .put("model", gpu.model())
            .put("memory", gpu.usableMemory().bytes() / MIB + "Mi");
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
    Map<String, String> notes = Map.of(Driver.GPUS, text(), Driver.RESOURCES, resources);
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

  private Map<String, String> present() {
    Node present = api.nodes().withName(node).get();
    return present == null || present.getMetadata().getAnnotations() == null
        ? Map.of()
        : present.getMetadata().getAnnotations();
  }
}
