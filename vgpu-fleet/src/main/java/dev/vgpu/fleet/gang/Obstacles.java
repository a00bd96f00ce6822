package dev.vgpu.fleet.gang;

import dev.vgpu.fleet.model.NodeSpec;
import dev.vgpu.fleet.model.Request;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;

/**
 * The gangs that would not fit even if nothing else ran, and why. A finding holds until something
 * changes on which it depends. Confined to its {@link FleetQueue}.
 */
final class Obstacles {
  private final Map<String, String> found = new HashMap<>();

  /** By name: those that depend on the place of a gang that runs. */
  private final Map<String, Gang> dependents = new HashMap<>();

  /** {@return why a gang does not fit; empty if it does, or has not been tried} */
  Optional<String> of(String gang) {
    return Optional.ofNullable(found.get(gang));
  }

  /** A gang with these members does not fit the nodes. */
  void found(Gang gang, List<Request> members, List<NodeSpec> nodes) {
    found.put(gang.name(), text(gang.terms(), members, nodes));
    if (members.stream().anyMatch(member -> !member.sameNodeAs().isEmpty())) {
      dependents.put(gang.name(), gang);
    }
  }

  /** A gang has changed: it, and all that are tried together with it, may fit now. */
  void forget(Gang gang) {
    if (gang.isDependent() || dependents.containsKey(gang.name())) {
      found.clear();
      dependents.clear();
    } else {
      found.remove(gang.name());
    }
  }

  /** Gangs have started or ended: those that must share a node may fit now. */
  void placesChanged() {
    dependents.keySet().forEach(found::remove);
    dependents.clear();
  }

  private static String text(Terms terms, List<Request> members, List<NodeSpec> nodes) {
    int gpus = 0;
    int usable = 0;
    for (NodeSpec node : nodes) {
      boolean isUsable =
          members.stream()
              .anyMatch(one -> one.allows(node.name()) && one.shape().takes(node.gpuModel()));
      gpus += node.gpus();
      usable += isUsable ? node.gpus() : 0;
    }
    return "does not fit even if nothing else ran: members="
        + members.size()
        + " gpus="
        + members.stream().mapToInt(member -> member.shape().gpus()).sum()
        + " percent="
        + members.stream().mapToInt(member -> member.shape().totalPercent()).sum()
        + (terms.closeness() == Terms.Closeness.RACK_REQUIRED ? " in one rack" : "")
        + "; the fleet has gpus="
        + gpus
        + ", of which it may use "
        + usable;
  }
}
