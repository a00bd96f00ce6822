package dev.vgpu.fleet.placement;

import dev.vgpu.fleet.model.Fleet;
import dev.vgpu.fleet.model.NodeState;
import dev.vgpu.fleet.model.Shape;

/** What a change of a node's state costs. Depends on its arguments alone, so it is remembered. */
interface Scoring {
  /** {@return its name, as in tables} */
  String name();

  /** {@return the cost, of which less is better} */
  float cost(NodeState before, NodeState after, Shape shape);

  /** {@return which scarce things the node can host no more, as bits} */
  default long lost(NodeState before, NodeState after) {
    return 0;
  }

  /** {@return the price of each bit of {@link #lost}, as the whole fleet is now} */
  default float[] prices(Fleet fleet) {
    return new float[0];
  }

  /** {@return the step to which a cost is rounded once its prices are added; 0: it is not} */
  default float step() {
    return 0;
  }

  /**
   * {@return how many costs a decision in a fleet of many states may compute once it has found a
   * node}
   */
  default int mostFresh() {
    return 160;
  }
}
