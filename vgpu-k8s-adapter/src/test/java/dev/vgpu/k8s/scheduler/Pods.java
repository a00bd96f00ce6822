package dev.vgpu.k8s.scheduler;

import dev.vgpu.k8s.names.Driver;
import dev.vgpu.k8s.names.KubeletResource;
import io.fabric8.kubernetes.api.model.Node;
import io.fabric8.kubernetes.api.model.NodeBuilder;
import io.fabric8.kubernetes.api.model.Pod;
import io.fabric8.kubernetes.api.model.PodBuilder;
import io.fabric8.kubernetes.api.model.PodConditionBuilder;
import io.fabric8.kubernetes.api.model.Quantity;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.StringJoiner;
import java.util.stream.Collectors;
import java.util.stream.IntStream;

/** Pods and nodes in the API's form. */
public final class Pods {
  private Pods() {}

  public static Node node(String name, int gpus) {
    return node(name, gpus, Set.of(KubeletResource.values()));
  }

  public static Node node(String name, int gpus, Set<KubeletResource> offered) {
    Map<String, Quantity> allocatable = new HashMap<>();
    allocatable.put("cpu", new Quantity("64"));
    allocatable.put("memory", new Quantity("256Gi"));
    Set<String> names = offered.stream().map(KubeletResource::resource).collect(Collectors.toSet());
    names.forEach(one -> allocatable.put(one, new Quantity("64")));
    StringJoiner list = new StringJoiner(",", "[", "]");
    for (int gpu = 0; gpu < gpus; gpu++) {
      list.add(
          "{\"uuid\":\"GPU-" + name + "-" + gpu + "\",\"model\":\"A100\",\"memory\":\"40Gi\"}");
    }
    return new NodeBuilder()
        .withNewMetadata()
        .withName(name)
        .withAnnotations(
            Map.of(Driver.GPUS, list.toString(), Driver.RESOURCES, String.join(",", names)))
        .endMetadata()
        .withNewStatus()
        .withAllocatable(allocatable)
        .endStatus()
        .build();
  }

  public static List<Node> nodes(int count, int gpus) {
    return IntStream.range(0, count).mapToObj(i -> node("node-" + i, gpus)).toList();
  }

  /** Nodes where NVIDIA's device plugin gives whole GPUs, and vgpu's node role does not run. */
  public static List<Node> plainNodes(int count, int gpus) {
    return IntStream.range(0, count).mapToObj(i -> plainNode("node-" + i, gpus)).toList();
  }

  public static Node plainNode(String name, int gpus) {
    return new NodeBuilder(node(name, gpus, Set.of(KubeletResource.HAMI)))
        .editMetadata()
        .withAnnotations(Map.of())
        .withLabels(
            Map.of(
                "nvidia.com/gpu.count", Integer.toString(gpus), "nvidia.com/gpu.memory", "40960"))
        .endMetadata()
        .build();
  }

  public static Pod pod(String name, Map<String, String> notes, Map<String, String> limits) {
    Map<String, Quantity> quantities = new HashMap<>();
    limits.forEach((resource, amount) -> quantities.put(resource, new Quantity(amount)));
    return new PodBuilder()
        .withNewMetadata()
        .withName(name)
        .withNamespace("default")
        .withUid("uid-" + name)
        .withAnnotations(new HashMap<>(notes))
        .endMetadata()
        .withNewSpec()
        .addNewContainer()
        .withName("main")
        .withNewResources()
        .withLimits(quantities)
        .endResources()
        .endContainer()
        .endSpec()
        .withNewStatus()
        .withPhase("Pending")
        .endStatus()
        .build();
  }

  /** A pod that was created then, with a claim of its name. */
  public static Pod withClaim(String name, Map<String, String> notes, String created) {
    return withClaim(pod(name, notes, Map.of("cpu", "1")), name, created);
  }

  /** A pod that was created then, with a claim. */
  public static Pod withClaim(Pod pod, String claim, String created) {
    return new PodBuilder(pod)
        .editMetadata()
        .withCreationTimestamp(created)
        .endMetadata()
        .editSpec()
        .addNewResourceClaim()
        .withName("gpu")
        .withResourceClaimName(claim)
        .endResourceClaim()
        .endSpec()
        .build();
  }

  public static Pod share(String name, int percent, Map<String, String> more) {
    Map<String, String> notes = new HashMap<>(more);
    notes.put("vgpu.dev/share", Integer.toString(percent));
    notes.put("vgpu.dev/memory", "1Gi");
    return pod(name, notes, Map.of("vgpu.dev/slot", "1"));
  }

  public static Pod whole(String name, int gpus, Map<String, String> notes) {
    return pod(name, notes, Map.of("nvidia.com/gpu", Integer.toString(gpus)));
  }

  public static Map<String, String> gang(String name, int size) {
    return Map.of("vgpu.dev/gang", name, "vgpu.dev/gang-size", Integer.toString(size));
  }

  public static List<Pod> gangOfWholes(String name, int size) {
    List<Pod> all = new ArrayList<>();
    for (int i = 0; i < size; i++) {
      all.add(whole(name + "-" + i, 1, gang(name, size)));
    }
    return all;
  }

  public static Pod bound(Pod pod, String node, Map<String, String> notes) {
    return new PodBuilder(pod)
        .editMetadata()
        .addToAnnotations(notes)
        .endMetadata()
        .editSpec()
        .withNodeName(node)
        .endSpec()
        .build();
  }

  /** What kube-scheduler writes into a pod that it cannot place. */
  public static Pod waits(Pod pod, String reason) {
    return new PodBuilder(pod)
        .editStatus()
        .withConditions(
            new PodConditionBuilder()
                .withType("PodScheduled")
                .withStatus("False")
                .withReason("Unschedulable")
                .withMessage("0/2 nodes are available: 2 " + reason + ".")
                .build())
        .endStatus()
        .build();
  }
}
