package dev.vgpu.fleet.placement;

import dev.vgpu.fleet.model.Fleet;
import dev.vgpu.fleet.model.StateGroup;

/** How fragmented a whole fleet is, for what usually comes. Confined to one thread. */
public final class Fragments {
  private final Fragmentation fragmentation;

  /**
   * Makes the measure.
   *
   * @param workload what usually comes
   */
  public Fragments(Workload workload) {
    fragmentation = new Fragmentation(workload);
  }

  /**
   * {@return the idle GPU time that a usual request could not use on average, in percent of one
   * GPU}
   *
   * @param fleet the fleet as it is now
   */
  public double of(Fleet fleet) {
    double sum = 0;
    for (StateGroup group : fleet.groups()) {
      sum += (double) group.size() * fragmentation.of(group.state());
    }
    return sum;
  }
}
