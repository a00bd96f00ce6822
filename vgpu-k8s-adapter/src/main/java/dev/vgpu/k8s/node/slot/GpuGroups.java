package dev.vgpu.k8s.node.slot;

import dev.vgpu.GpuId;
import dev.vgpu.GpuReading;
import dev.vgpu.PhysicalGpu;
import dev.vgpu.k8s.node.health.GpuConditions;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.OptionalInt;

/**
 * The groups of a node's GPUs: GPUs that NVLink connects, directly or over switches; without
 * NVLink, those of one NUMA node. Immutable.
 */
final class GpuGroups {
  private final Map<GpuId, Integer> groups = new HashMap<>();

  GpuGroups(List<PhysicalGpu> gpus, GpuConditions conditions) {
    // The group of each GPU is the number of its first one; the last stands for the switches.
    List<Integer> first = new ArrayList<>();
    for (int i = 0; i <= gpus.size(); i++) {
      first.add(i);
    }
    List<GpuId> ids = gpus.stream().map(PhysicalGpu::id).toList();
    List<String> names = ids.stream().map(GpuId::value).toList();
    boolean isLinked = false;
    for (int i = 0; i < ids.size(); i++) {
      for (int other : ends(names, conditions.answer(ids.get(i)).map(GpuReading::nvLinks))) {
        join(first, i, other);
        isLinked = true;
      }
    }
    for (int i = 0; i < ids.size(); i++) {
      GpuId id = ids.get(i);
      if (isLinked) {
        groups.put(id, first.get(i));
      } else {
        conditions
            .answer(id)
            .map(reading -> reading.properties().getOrDefault("numa_node", ""))
            .filter(node -> node.matches("\\d{1,4}"))
            .ifPresent(node -> groups.put(id, Integer.parseInt(node)));
      }
    }
  }

  /** {@return the numbers of the GPUs at the other ends of links that are up} */
  private static List<Integer> ends(List<String> names, Optional<List<GpuReading.NvLink>> links) {
    List<Integer> ends = new ArrayList<>();
    for (GpuReading.NvLink link : links.orElse(List.of())) {
      String peer = link.isActive() ? link.peer().orElse("") : "";
      int number = peer.equals("switch") ? names.size() : names.indexOf(peer);
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
