package dev.vgpu.fleet.placement;

import dev.vgpu.fleet.model.Fleet;
import dev.vgpu.fleet.model.Request;
import dev.vgpu.fleet.model.Spot;
import java.util.Optional;
import java.util.function.IntPredicate;

/**
 * Uses one policy while a fleet fills, and another once requests end more than half as often as
 * they are placed. Both rates are decaying sums over about 2,000 settled changes.
 *
 * <p>Stranded GPU time is the right measure for a node on which no work ends. Where work ends,
 * stranded capacity is freed together with its neighbours', and fragmentation is the better
 * measure.
 */
final class TurnoverPolicy implements PlacementPolicy {
  private static final double MEMORY = 1 - 1.0 / 2000;
  private static final double OFTEN = 0.5;

  private final PlacementPolicy filling;
  private final PlacementPolicy turning;
  private long placed;
  private long released;
  private double comings;
  private double goings;

  TurnoverPolicy(PlacementPolicy filling, PlacementPolicy turning) {
    this.filling = filling;
    this.turning = turning;
  }

  @Override
  public String name() {
    return Policies.OURS;
  }

  @Override
  public Optional<Spot> choose(Fleet fleet, Request request) {
    return now().choose(fleet, request);
  }

  @Override
  public Optional<Spot> choose(Fleet fleet, Request request, IntPredicate allowed) {
    return now().choose(fleet, request, allowed);
  }

  @Override
  public void settle(Fleet fleet) {
    long came = fleet.placedCount() - placed;
    long went = fleet.releasedCount() - released;
    if (came == 0 && went == 0) {
      return;
    }
    // Less than zero came if more was evicted, or given back, than placed.
    comings = Math.max(0, MEMORY * comings + came);
    goings = MEMORY * goings + went;
    placed = fleet.placedCount();
    released = fleet.releasedCount();
  }

  private PlacementPolicy now() {
    return goings > OFTEN * comings ? turning : filling;
  }
}
