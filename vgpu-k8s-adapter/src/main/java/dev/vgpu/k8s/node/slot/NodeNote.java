package dev.vgpu.k8s.node.slot;

import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.JsonNodeFactory;
import dev.vgpu.GpuHealth;
import dev.vgpu.GpuId;
import dev.vgpu.GpuPool;
import dev.vgpu.GpuState;
import dev.vgpu.PhysicalGpu;
import dev.vgpu.k8s.Driver;
import io.fabric8.kubernetes.api.model.Node;
import io.fabric8.kubernetes.client.KubernetesClient;
import io.fabric8.kubernetes.client.dsl.base.PatchContext;
import io.fabric8.kubernetes.client.dsl.base.PatchType;
import java.util.Set;
import java.util.stream.Collectors;

/**
 * Publishes the node's GPUs for the scheduler, in the annotation {@link Driver#GPUS} of the Node.
 * Written when the GPUs change, and when the Node has lost the annotation, for example because the
 * Node was created anew. Confined to one thread.
 */
final class NodeNote {
  private static final long MIB = 1L << 20;

  /** After this many calls the annotation is read back instead of trusted. */
  private static final int TRUSTED_CALLS = 10;

  private final KubernetesClient api;
  private final GpuPool pool;
  private final String node;
  private String written = "";
  private int calls;

  NodeNote(KubernetesClient api, GpuPool pool, String node) {
    this.api = api;
    this.pool = pool;
    this.node = node;
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
   * Writes the annotation if it has changed.
   *
   * @throws io.fabric8.kubernetes.client.KubernetesClientException if the API server rejects it;
   *     may be tried again
   */
  void publish() {
    String text = text();
    if (++calls % TRUSTED_CALLS == 0) {
      written = present();
    }
    if (!text.equals(written)) {
      String patch =
          JsonNodeFactory.instance
              .objectNode()
              .set(
                  "metadata",
                  JsonNodeFactory.instance
                      .objectNode()
                      .set(
                          "annotations",
                          JsonNodeFactory.instance.objectNode().put(Driver.GPUS, text)))
              .toString();
      Object ignored =
          api.nodes().withName(node).patch(PatchContext.of(PatchType.JSON_MERGE), patch);
      written = text;
    }
  }

  private String present() {
    Node present = api.nodes().withName(node).get();
    return present == null || present.getMetadata().getAnnotations() == null
        ? ""
        : present.getMetadata().getAnnotations().getOrDefault(Driver.GPUS, "");
  }
}
