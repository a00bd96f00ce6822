package dev.vgpu.fleet.gang;

import dev.vgpu.request.PreemptionClass;

/**
 * What holds for a gang as a whole. A single request is a gang of one. Immutable.
 *
 * @param name unique among the waiting and running gangs
 * @param size the number of members; the gang is not tried before all have been added
 * @param preemptionClass the class of all its members
 * @param runS its expected running time in seconds; infinite if unknown
 * @param closeness how close its members must be
 */
public record Terms(
    String name, int size, PreemptionClass preemptionClass, double runS, Closeness closeness) {
  /** How close members must be to each other. */
  public enum Closeness {
    /** On any nodes. */
    ANYWHERE,

    /** In one rack if one has room for all, otherwise on any nodes. */
    RACK_PREFERRED,

    /** In one rack; until one has room, they wait. */
    RACK_REQUIRED
  }

  /**
   * Checks the numbers.
   *
   * @throws IllegalArgumentException if the size is below 1 or the time is not positive
   */
  public Terms {
    if (size < 1 || !(runS > 0)) {
      throw new IllegalArgumentException(
          "no such gang: name=" + name + " size=" + size + " runS=" + runS);
    }
  }

  /**
   * {@return the terms of a gang whose members may be on any nodes}
   *
   * @param name its name
   * @param size the number of members
   * @param preemptionClass their class
   * @param runS its expected running time in seconds
   */
  public static Terms of(String name, int size, PreemptionClass preemptionClass, double runS) {
    return new Terms(name, size, preemptionClass, runS, Closeness.ANYWHERE);
  }
}
