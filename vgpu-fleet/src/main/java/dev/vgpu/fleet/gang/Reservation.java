package dev.vgpu.fleet.gang;

import java.util.Set;

/**
 * The place reserved for the first gang in line. Immutable.
 *
 * @param gang the gang's name
 * @param startS when everything in its way is expected to have ended, in seconds
 * @param nodes the reserved nodes; only gangs that end before {@code startS} may still start there
 */
public record Reservation(String gang, double startS, Set<Integer> nodes) {
  /** Copies the set. */
  public Reservation {
    nodes = Set.copyOf(nodes);
  }
}
