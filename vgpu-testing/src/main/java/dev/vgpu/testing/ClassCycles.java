package dev.vgpu.testing;

import com.tngtech.archunit.core.domain.JavaClass;
import com.tngtech.archunit.core.domain.JavaClasses;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Deque;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import java.util.TreeSet;

/** Finds classes that depend on each other, directly or through others. */
public final class ClassCycles {
  private ClassCycles() {}

  /**
   * {@return the sets of two or more classes that depend on each other} A nested class counts as
   * its outermost class.
   *
   * @param classes the classes to examine; other classes that they use are ignored
   */
  public static List<Set<String>> of(JavaClasses classes) {
    Map<String, Set<String>> uses = new TreeMap<>();
    for (JavaClass type : classes) {
      Set<String> used = uses.computeIfAbsent(outermost(type), name -> new TreeSet<>());
      type.getDirectDependenciesFromSelf()
          .forEach(dependency -> used.add(outermost(dependency.getTargetClass())));
      used.remove(outermost(type));
    }
    uses.values().forEach(used -> used.retainAll(uses.keySet()));
    Map<String, Set<String>> reached = new TreeMap<>();
    uses.keySet().forEach(name -> reached.put(name, reachedFrom(name, uses)));
    List<Set<String>> cycles = new ArrayList<>();
    for (Map.Entry<String, Set<String>> each : reached.entrySet()) {
      Set<String> cycle = new TreeSet<>(each.getValue());
      cycle.removeIf(other -> !reached.getOrDefault(other, Set.of()).contains(each.getKey()));
      if (!cycle.isEmpty() && !cycles.contains(cycle)) {
        cycles.add(cycle);
      }
    }
    return cycles;
  }

  private static String outermost(JavaClass type) {
    return type.getBaseComponentType().getName().replaceFirst("\\$.*", "");
  }

  private static Set<String> reachedFrom(String start, Map<String, Set<String>> uses) {
    Set<String> found = new TreeSet<>();
    Deque<String> open = new ArrayDeque<>(uses.getOrDefault(start, Set.of()));
    while (!open.isEmpty()) {
      String next = open.pop();
      if (found.add(next)) {
        open.addAll(uses.getOrDefault(next, Set.of()));
      }
    }
    return found;
  }
}
