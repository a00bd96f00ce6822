package dev.vgpu.memory;

import java.util.Arrays;

/**
 * The shapes of a run's inputs, in a fixed order: for each, its rank, then its dimensions.
 * Immutable.
 */
public final class Shapes {
  private final long[] values;
  private final int hash;

  private Shapes(long[] values) {
    this.values = values;
    this.hash = Arrays.hashCode(values);
  }

  /**
   * {@return the shapes of a run}
   *
   * @param each an input's dimensions; the inputs of all runs in the same order
   */
  public static Shapes of(long[]... each) {
    int length = each.length;
    for (long[] shape : each) {
      length += shape.length;
    }
    long[] values = new long[length];
    int at = 0;
    for (long[] shape : each) {
      values[at++] = shape.length;
      System.arraycopy(shape, 0, values, at, shape.length);
      at += shape.length;
    }
    return new Shapes(values);
  }

  /**
   * {@return whether no dimension is larger than in the other run, which then needs at least as
   * much memory}
   */
  public boolean isWithin(Shapes other) {
    if (values.length != other.values.length) {
      return false;
    }
    int at = 0;
    while (at < values.length) {
      if (values[at] != other.values[at]) {
        return false; // another rank
      }
      int end = at + 1 + (int) values[at];
      for (at++; at < end; at++) {
        if (values[at] > other.values[at]) {
          return false;
        }
      }
    }
    return true;
  }

  @Override
  public boolean equals(Object other) {
    return other instanceof Shapes shapes && Arrays.equals(values, shapes.values);
  }

  @Override
  public int hashCode() {
    return hash;
  }

  @Override
  public String toString() {
    return Arrays.toString(values);
  }
}
