package dev.vgpu.fleet.model;

import java.util.List;

/**
 * A request and where it is. Immutable.
 *
 * @param request what was asked
 * @param node the node's number
 * @param gpus the numbers of its GPUs on that node
 * @param migStart where its MIG instance begins; 0 if it has none
 */
public record Placement(Request request, int node, List<Integer> gpus, int migStart) {
  /** Copies the list. */
  public Placement {
    gpus = List.copyOf(gpus);
  }
}
