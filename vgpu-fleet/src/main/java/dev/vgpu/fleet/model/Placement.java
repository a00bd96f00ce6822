package dev.vgpu.fleet.model;

import java.util.List;

/**
 * A request and its place. Immutable.
 *
 * @param request the request
 * @param node the node's number
 * @param gpus the numbers of its GPUs on that node
 * @param migStart the first slice of its MIG instance; 0 if it has none
 */
public record Placement(Request request, int node, List<Integer> gpus, int migStart) {
  /** Copies the list. */
  public Placement {
    gpus = List.copyOf(gpus);
  }
}
