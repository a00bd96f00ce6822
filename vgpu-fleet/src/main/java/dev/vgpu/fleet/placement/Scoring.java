package dev.vgpu.fleet.placement;

import dev.vgpu.fleet.model.Fleet;
import dev.vgpu.fleet.model.NodeState;
import dev.vgpu.fleet.model.Shape;

/**
 * The cost of a change of a node's state. It depends only on the arguments, so it can be cached.
 */
interface Scoring {
  /** {@return its name, as shown in tables} */
  String name();

  /** {@return the cost; lower is better} */
  float cost(NodeState before, NodeState after, Shape shape);

  /** {@return a bit set of the scarce shapes that the node can no longer host} */
  default long lost(NodeState before, NodeState after) {
    return 0;
  }

  /** {@return the current price of each bit of {@link #lost}, for the whole fleet} */
  default float[] prices(Fleet fleet) {
    return new float[0];
  }

  /** {@return the step to which a cost is rounded after its prices are added; 0 for no rounding} */
  default float step() {
    return 0;
  }

  /** {@return how many costs a decision among many states may compute once it has found a node} */
  default int mostFresh() {
    return 160;
  }
}
