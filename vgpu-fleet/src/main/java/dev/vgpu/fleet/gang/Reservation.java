package dev.vgpu.fleet.gang;

import java.util.Set;

/**
 * The place that is held for the first gang in line. Immutable.
 *
 * @param gang its name
 * @param startS when everything that is in its way is expected to have ended, in seconds
 * @param nodes the nodes it will take; only what ends before may still begin there
 */
public record Reservation(String gang, double startS, Set<Integer> nodes) {
  /** Copies the set. */
  public Reservation {
    nodes = Set.copyOf(nodes);
  }
}
