package dev.vgpu.fleet.gang;

import dev.vgpu.fleet.model.Placement;
import java.util.List;

/** A decision of the queue, to be carried out by its caller. */
public sealed interface Decision {
  /** {@return the gang's name} */
  String gang();

  /**
   * All members of a gang are placed and may start.
   *
   * @param gang the gang's name
   * @param placements where its members are
   */
  record Start(String gang, List<Placement> placements) implements Decision {
    /** Copies the list. */
    public Start {
      placements = List.copyOf(placements);
    }
  }

  /**
   * A gang must end at once. It waits again, at its old place in line.
   *
   * @param gang the gang's name
   * @param forGang the gang that starts instead
   */
  record Evict(String gang, String forGang) implements Decision {}
}
