package dev.vgpu.memory;

import java.util.Arrays;

/**
 * The shapes of a run's inputs, in a fixed order: for each, its rank, then its dimensions. Each
 * thread has shapes of its own that it fills anew for each run, so that to look up a run allocates
 * nothing; {@link #kept()} copies them. Those are confined to their thread, the copies immutable.
 */
public final class Shapes {
  private static final ThreadLocal<Shapes> OF_THREAD =
      ThreadLocal.withInitial(() -> new Shapes(new long[16]));

  /** A rank that no input has. */
  private static final long NO_RANK = -1;

  private long[] values;
  private int length;

  private Shapes(long[] values) {
    this.values = values;
  }

  /** {@return the shapes of this thread, emptied; valid until the next call of this method} */
  public static Shapes ofThisThread() {
    Shapes shapes = OF_THREAD.get();
    shapes.length = 0;
    return shapes;
  }

  /**
   * Adds the next input. The inputs of all runs must come in the same order.
   *
   * @param shape its dimensions
   */
  public void add(long[] shape) {
    append(shape.length);
    for (long dimension : shape) {
      append(dimension);
    }
  }

  /** Adds an optional input that this run does not have. */
  public void addAbsent() {
    append(NO_RANK);
  }

  private void append(long value) {
    if (length == values.length) {
      values = Arrays.copyOf(values, 2 * length);
    }
    values[length++] = value;
  }

  /** {@return a copy, never changed} */
  public Shapes kept() {
    Shapes copy = new Shapes(Arrays.copyOf(values, length));
    copy.length = length;
    return copy;
  }

  /**
   * {@return whether no dimension is larger than in the other run, which then needs at least as
   * much memory}
   */
  public boolean isWithin(Shapes other) {
    if (length != other.length) {
      return false;
    }
    int at = 0;
    while (at < length) {
      if (values[at] != other.values[at]) {
        return false; // another rank
      }
      int end = at + 1 + (int) Math.max(0, values[at]);
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
    return other instanceof Shapes shapes
        && Arrays.equals(values, 0, length, shapes.values, 0, shapes.length);
  }

  @Override
  public int hashCode() {
    int hash = 1;
    for (int i = 0; i < length; i++) {
      hash = 31 * hash + Long.hashCode(values[i]);
    }
    return hash;
  }

  @Override
  public String toString() {
    return Arrays.toString(Arrays.copyOf(values, length));
  }
}
