package dev.vgpu.fleet.gang;

import dev.vgpu.PreemptionClass;

/**
 * What holds for a gang as a whole; a single request is a gang of one. Immutable.
 *
 * @param name unique among what waits or runs
 * @param size how many members it has; it is not tried before all have come
 * @param preemptionClass the class of all its members
 * @param runS how long it is expected to run, in seconds; infinite: not known
 * @param closeness how close its members have to be
 */
public record Terms(
    String name, int size, PreemptionClass preemptionClass, double runS, Closeness closeness) {
  /** How close members have to be to each other. */
  public enum Closeness {
    /** They may be anywhere. */
    ANYWHERE,

    /** One rack, if there is one with room for all. */
    RACK_PREFERRED,

    /** One rack, or they wait. */
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
   * {@return the terms of a gang that may be anywhere}
   *
   * @param name its name
   * @param size how many members it has
   * @param preemptionClass their class
   * @param runS the expected time in seconds
   */
  public static Terms of(String name, int size, PreemptionClass preemptionClass, double runS) {
    return new Terms(name, size, preemptionClass, runS, Closeness.ANYWHERE);
  }
}
