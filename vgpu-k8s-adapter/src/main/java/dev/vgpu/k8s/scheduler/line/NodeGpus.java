package dev.vgpu.k8s.scheduler.line;

import com.fasterxml.jackson.core.JsonProcessingException;
import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import dev.vgpu.fleet.model.NodeSpec;
import dev.vgpu.k8s.names.Driver;
import dev.vgpu.k8s.names.KubeletResource;
import dev.vgpu.k8s.names.PodRequest;
import dev.vgpu.request.MemorySize;
import io.fabric8.kubernetes.api.model.Node;
import io.fabric8.kubernetes.api.model.Quantity;
import java.math.BigDecimal;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.function.Predicate;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * The GPUs of a node according to the API: from the annotation {@value Driver#GPUS}, or otherwise
 * from the labels of NVIDIA's feature discovery. Immutable.
 *
 * @param spec the node in the fleet's terms
 * @param ids the GPUs' UUIDs, or their numbers if only labels are known
 * @param offered the resources by which containers get GPUs there
 * @param isShared whether vgpu's node role runs there; otherwise only whole GPUs can be had
 */
public record NodeGpus(
    NodeSpec spec, List<String> ids, Set<KubeletResource> offered, boolean isShared) {
  static final String RACK = "topology.kubernetes.io/rack";
  private static final Logger LOG = LoggerFactory.getLogger(NodeGpus.class);
  private static final ObjectMapper JSON = new ObjectMapper();
  private static final BigDecimal MILLI = BigDecimal.valueOf(1000);
  private static final String FEATURE = "nvidia.com/gpu.";

  /** Copies the lists. */
  public NodeGpus {
    ids = List.copyOf(ids);
    offered = Set.copyOf(offered);
  }

  /** {@return the node's GPUs; empty if it has none, or its data is not valid} */
  public static Optional<NodeGpus> of(Node node) {
    String name = node.getMetadata().getName();
    Map<String, String> notes = node.getMetadata().getAnnotations();
    try {
      if (notes != null && notes.containsKey(Driver.GPUS)) {
        return Optional.of(listed(node, JSON.readTree(notes.get(Driver.GPUS))));
      }
      return labelled(node);
    } catch (JsonProcessingException | IllegalArgumentException | ArithmeticException e) {
      LOG.warn("node {} is left out: what it says of its GPUs is wrong: {}", name, e.getMessage());
      return Optional.empty();
    }
  }

  private static NodeGpus listed(Node node, JsonNode list) {
    List<String> ids = new ArrayList<>();
    List<Integer> groups = new ArrayList<>();
    String model = "";
    MemorySize memory = MemorySize.ZERO;
    for (JsonNode gpu : list) {
      String id = gpu.path("uuid").asText();
      MemorySize size =
          MemorySize.ofBytes(
              Quantity.getAmountInBytes(Quantity.parse(gpu.path("memory").asText()))
                  .longValueExact());
      boolean isFirst = ids.isEmpty();
      if (id.isEmpty()
          || ids.contains(id)
          || (!isFirst && (!model.equals(gpu.path("model").asText()) || !memory.equals(size)))) {
        throw new IllegalArgumentException("GPUs of a node are alike and have UUIDs: " + gpu);
      }
      model = gpu.path("model").asText();
      memory = size;
      ids.add(id);
      groups.add(gpu.path("group").asInt());
    }
    Map<String, String> notes = node.getMetadata().getAnnotations();
    List<String> others = List.of(notes.getOrDefault(Driver.RESOURCES, "").split(","));
    Set<KubeletResource> offered =
        offered(node, one -> one == KubeletResource.SLOT || others.contains(one.resource()));
    return new NodeGpus(spec(node, model, memory, groups), ids, offered, true);
  }

  /** {@return whether a container that requests this gets it there, and no more than it} */
  boolean serves(PodRequest request) {
    boolean isVgpus = request.isOfOneContainer() && request.gpus() <= PodRequest.MOST_GPUS;
    return (isShared ? isVgpus : request.isWhole())
        && !Collections.disjoint(offered, request.resources());
  }

  /** {@return those of a pod's GPUs that the node has lost} A GPU's number tells nothing. */
  List<String> lost(List<String> all) {
    return all.stream().filter(id -> isShared && !isNumber(id) && !ids.contains(id)).toList();
  }

  private static boolean isNumber(String id) {
    return id.chars().allMatch(Character::isDigit);
  }

  private static Optional<NodeGpus> labelled(Node node) {
    Map<String, String> labels = node.getMetadata().getLabels();
    if (labels == null || !labels.containsKey(FEATURE + "count")) {
      return Optional.empty();
    }
    int count = Integer.parseInt(labels.get(FEATURE + "count"));
    if (count < 0 || count > NodeSpec.MOST_GPUS) {
      throw new IllegalArgumentException(FEATURE + "count=" + count);
    }
    MemorySize memory =
        MemorySize.ofMebibytes(Long.parseLong(labels.getOrDefault(FEATURE + "memory", "0")));
    List<String> ids = new ArrayList<>();
    List<Integer> groups = new ArrayList<>();
    for (int i = 0; i < count; i++) {
      ids.add(Integer.toString(i));
      groups.add(0);
    }
    String model = labels.getOrDefault(FEATURE + "product", "");
    Set<KubeletResource> offered = offered(node, one -> one == KubeletResource.HAMI);
    return Optional.of(new NodeGpus(spec(node, model, memory, groups), ids, offered, false));
  }

  private static NodeSpec spec(Node node, String model, MemorySize memory, List<Integer> groups) {
    Map<String, Quantity> all = allocatable(node);
    Map<String, String> labels = node.getMetadata().getLabels();
    return new NodeSpec(
        node.getMetadata().getName(),
        model,
        groups.size(),
        memory,
        amount(all, "cpu").multiply(MILLI).intValue(),
        MemorySize.ofBytes(amount(all, "memory").longValue()),
        labels == null ? "" : labels.getOrDefault(RACK, ""),
        groups,
        List.of());
  }

  /** {@return those of the named resources that the kubelet has devices of} */
  private static Set<KubeletResource> offered(Node node, Predicate<KubeletResource> isNamed) {
    Map<String, Quantity> all = allocatable(node);
    return Stream.of(KubeletResource.values())
        .filter(isNamed)
        .filter(one -> amount(all, one.resource()).signum() > 0)
        .collect(Collectors.toSet());
  }

  private static Map<String, Quantity> allocatable(Node node) {
    return node.getStatus() == null || node.getStatus().getAllocatable() == null
        ? Map.of()
        : node.getStatus().getAllocatable();
  }

  private static BigDecimal amount(Map<String, Quantity> all, String name) {
    Quantity quantity = all.get(name);
    return quantity == null ? BigDecimal.ZERO : quantity.getNumericalAmount();
  }
}
