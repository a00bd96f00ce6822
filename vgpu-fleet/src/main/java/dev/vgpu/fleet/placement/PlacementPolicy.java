package dev.vgpu.fleet.placement;

import dev.vgpu.fleet.model.Fleet;
import dev.vgpu.fleet.model.Request;
import dev.vgpu.fleet.model.Spot;
import java.util.Optional;
import java.util.function.IntPredicate;

/**
 * Chooses a place for a request. Created for one fleet; confined to one thread.
 *
 * <p>Choices are also made in trials, whose placements are taken back. So {@link #choose} does not
 * change what is chosen later, except by the random policy. A policy learns from {@link #settle}
 * only.
 */
public interface PlacementPolicy {
  /** {@return its name, as shown in tables} */
  String name();

  /**
   * {@return the spot for a request; empty if it fits nowhere} Does not place it.
   *
   * @param fleet the fleet for which this policy was created
   * @param request the request
   */
  Optional<Spot> choose(Fleet fleet, Request request);

  /**
   * {@return the spot for a request on one of the allowed nodes; empty if it fits none of them}
   *
   * @param fleet the fleet for which this policy was created
   * @param request the request
   * @param allowed whether the node with a number may be used
   */
  Optional<Spot> choose(Fleet fleet, Request request, IntPredicate allowed);

  /**
   * Learns from what was placed and released since the last call. Called while no trial is going
   * on, before decisions. By default, has no effect.
   *
   * @param fleet the fleet for which this policy was created
   */
  default void settle(Fleet fleet) {}
}
