package dev.vgpu.fleet.placement;

import dev.vgpu.fleet.model.Fleet;
import dev.vgpu.fleet.model.Request;
import dev.vgpu.fleet.model.Spot;
import java.util.Optional;
import java.util.function.IntPredicate;

/** Decides where a request goes. Confined to one thread, and made for one fleet. */
public interface PlacementPolicy {
  /** {@return its name, as in tables} */
  String name();

  /**
   * {@return the spot for a request; empty if it fits nowhere} Nothing is placed.
   *
   * @param fleet the fleet for which this policy was made
   * @param request what is asked
   */
  Optional<Spot> choose(Fleet fleet, Request request);

  /**
   * {@return the spot for a request on one of some nodes; empty if it fits none of them}
   *
   * @param fleet the fleet for which this policy was made
   * @param request what is asked
   * @param allowed says of a node's number whether it may be taken
   */
  Optional<Spot> choose(Fleet fleet, Request request, IntPredicate allowed);
}
