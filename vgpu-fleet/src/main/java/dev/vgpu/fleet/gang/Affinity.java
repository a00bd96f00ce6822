package dev.vgpu.fleet.gang;

import dev.vgpu.fleet.model.Request;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;

/** Which members of a gang must share a node with another member. Immutable. */
final class Affinity {
  private final Map<String, Request> members = new HashMap<>();

  Affinity(List<Request> all) {
    all.forEach(member -> members.put(member.name(), member));
  }

  /** {@return the number of members that must be placed before this one} */
  int depth(Request member) {
    int depth = 0;
    Request at = member;
    while (at != null && !at.sameNodeAs().isEmpty() && depth <= members.size()) {
      depth++;
      at = members.get(at.sameNodeAs());
    }
    return depth;
  }

  /** {@return all members that must share the node of this one, directly or not, by name} */
  List<Request> followers(Request member) {
    List<Request> found = new ArrayList<>();
    for (Request other : members.values()) {
      Request at = other;
      for (int i = 0; at != null && i <= members.size(); i++) {
        if (at.sameNodeAs().equals(member.name())) {
          found.add(other);
          break;
        }
        at = members.get(at.sameNodeAs());
      }
    }
    found.sort((a, b) -> a.name().compareTo(b.name()));
    return found;
  }
}
