package dev.vgpu.fleet.placement;

import dev.vgpu.fleet.model.Fleet;
import dev.vgpu.fleet.model.StateGroup;

/** The fragmentation of a whole fleet under a typical workload. Confined to one thread. */
public final class Fragments {
  private final Fragmentation fragmentation;

  /**
   * Creates the measure.
   *
   * @param workload the typical requests
   */
  public Fragments(Workload workload) {
    fragmentation = new Fragmentation(workload);
  }

  /**
   * {@return the idle GPU time that a typical request could not use on average, in percent of one
   * GPU}
   *
   * @param fleet the fleet
   */
  public double of(Fleet fleet) {
    double sum = 0;
    for (StateGroup group : fleet.groups()) {
      sum += (double) group.size() * fragmentation.of(group.state());
    }
    return sum;
  }
}
