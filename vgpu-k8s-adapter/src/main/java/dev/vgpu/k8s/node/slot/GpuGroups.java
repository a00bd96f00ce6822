package dev.vgpu.k8s.node.slot;

import dev.vgpu.k8s.node.health.GpuConditions;
import dev.vgpu.request.GpuId;
import dev.vgpu.watch.GpuReading;
import dev.vgpu.watch.PhysicalGpu;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.OptionalInt;

/**
 * The groups of a node's GPUs: GPUs that NVLink connects, directly or over switches; without
 * NVLink, those of one NUMA node. Switches connect only GPUs of one clique. Immutable.
 */
final class GpuGroups {
  private static final String SWITCH = "switch";

  private final Map<GpuId, Integer> groups = new HashMap<>();

  GpuGroups(List<PhysicalGpu> gpus, GpuConditions conditions) {
    List<GpuId> ids = gpus.stream().map(PhysicalGpu::id).toList();
    List<String> cliques = ids.stream().map(id -> property(conditions, id, "clique")).toList();
    List<String> names = new ArrayList<>(ids.stream().map(GpuId::value).toList());
    cliques.stream().distinct().map(clique -> SWITCH + clique).forEach(names::add);
    // The group of each GPU is the number of its first one; the last ones stand for the switches.
    List<Integer> first = new ArrayList<>();
    for (int i = 0; i < names.size(); i++) {
      first.add(i);
    }
    boolean isLinked = false;
    for (int i = 0; i < ids.size(); i++) {
      Optional<List<GpuReading.NvLink>> links =
          conditions.answer(ids.get(i)).map(GpuReading::nvLinks);
      for (int other : ends(names, links, cliques.get(i))) {
        join(first, i, other);
        isLinked = true;
      }
    }
    for (int i = 0; i < ids.size(); i++) {
      GpuId id = ids.get(i);
      if (isLinked) {
        groups.put(id, first.get(i));
      } else {
        String node = property(conditions, id, "numa_node");
        if (node.matches("\\d{1,4}")) {
          groups.put(id, Integer.parseInt(node));
        }
      }
    }
  }

  private static String property(GpuConditions conditions, GpuId gpu, String name) {
    return conditions.answer(gpu).map(one -> one.properties().getOrDefault(name, "")).orElse("");
  }

  /** {@return the numbers of the GPUs and switches at the other ends of links that are up} */
  private static List<Integer> ends(
      List<String> names, Optional<List<GpuReading.NvLink>> links, String clique) {
    List<Integer> ends = new ArrayList<>();
    for (GpuReading.NvLink link : links.orElse(List.of())) {
      String peer = link.isActive() ? link.peer().orElse("") : "";
      int number = names.indexOf(peer.equals(SWITCH) ? SWITCH + clique : peer);
      if (number >= 0) {
        ends.add(number);
      }
    }
    return ends;
  }

  private static void join(List<Integer> first, int one, int other) {
    int less = Math.min(first.get(one), first.get(other));
    int more = Math.max(first.get(one), first.get(other));
    first.replaceAll(group -> group == more ? less : group);
  }

  /** {@return the number of a GPU's group; empty if unknown} */
  OptionalInt of(GpuId gpu) {
    Integer group = groups.get(gpu);
    return group == null ? OptionalInt.empty() : OptionalInt.of(group);
  }
}
