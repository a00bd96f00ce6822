package dev.vgpu.k8s.scheduler.line;

import com.fasterxml.jackson.core.JsonProcessingException;
import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.JsonNodeFactory;
import com.fasterxml.jackson.databind.node.ObjectNode;
import dev.vgpu.k8s.names.Driver;
import dev.vgpu.k8s.names.PodRequest;
import dev.vgpu.k8s.names.PodRequests;
import dev.vgpu.request.MemorySize;
import io.fabric8.kubernetes.api.model.Pod;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Optional;

/**
 * A pod's place: its node and its GPUs. It is written to the pod and read back. What is read is
 * untrusted, and checked against the fleet before it counts. Immutable.
 *
 * @param node the node's name
 * @param ids the GPUs' UUIDs
 */
public record Place(String node, List<String> ids) {
  /** The annotation with the place: {@code {"node":…,"gpus":[…],"gang":…,"size":…,"at":…}}. */
  static final String ANNOTATION = Driver.NAME + "/placement";

  private static final ObjectMapper JSON = new ObjectMapper();

  /** Copies the list. */
  public Place {
    ids = List.copyOf(ids);
  }

  /**
   * {@return the annotations with the node's reservation, and with this place for a restart}
   *
   * @param request the pod's request
   * @param card the memory of each of the node's GPUs
   * @param gang the name of the crew
   * @param size how many pods the crew needs
   * @param atS the time in seconds, so that no two writes are equal
   */
  Map<String, String> annotations(
      PodRequest request, MemorySize card, String gang, int size, double atS) {
    ObjectNode place = JsonNodeFactory.instance.objectNode();
    place.put("node", node);
    ArrayNode gpus = place.putArray("gpus");
    ids.forEach(gpus::add);
    place.put("gang", gang);
    place.put("size", size);
    place.put("at", Math.round(atS));
    ObjectNode held = JsonNodeFactory.instance.objectNode();
    ObjectNode container = held.putObject(request.container());
    if (ids.size() == 1) {
      container.put("gpu", ids.get(0));
    } else {
      ids.forEach(container.putArray("gpus")::add);
    }
    if (request.isWhole()) {
      container.put("whole", true);
    } else {
      if (request.sharePercent() > 0) {
        container.put("share", request.sharePercent());
      }
      long part = (long) (card.bytes() * request.memoryPercent() / 100);
      container.put("memory", Long.toString(Math.max(request.memory().bytes(), part)));
    }
    container.put("policy", PodRequests.text(request.policy()));
    container.put("class", PodRequests.text(request.preemptionClass()));
    return Map.of(ANNOTATION, place.toString(), Driver.RESERVATION, held.toString());
  }

  /**
   * The contents of a pod's annotation. Immutable.
   *
   * @param place the place
   * @param gang the name of the crew to which it was given
   * @param size how many pods that crew needed
   */
  public record Written(Place place, String gang, int size) {}

  /** {@return the contents of a pod's annotation; empty if it is absent or not readable} */
  public static Optional<Written> of(Pod pod) {
    Map<String, String> all = pod.getMetadata().getAnnotations();
    if (all == null || !all.containsKey(ANNOTATION)) {
      return Optional.empty();
    }
    try {
      JsonNode json = JSON.readTree(all.get(ANNOTATION));
      List<String> ids = new ArrayList<>();
      json.path("gpus").forEach(id -> ids.add(id.asText()));
      String node = json.path("node").asText();
      return node.isEmpty()
          ? Optional.empty()
          : Optional.of(
              new Written(
                  new Place(node, ids), json.path("gang").asText(), json.path("size").asInt()));
    } catch (JsonProcessingException e) {
      return Optional.empty();
    }
  }
}
