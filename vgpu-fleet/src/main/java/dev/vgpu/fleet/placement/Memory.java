package dev.vgpu.fleet.placement;

import java.util.Arrays;

/** The cached results for one shape, by the number of the state. */
final class Memory {
  private static final int LEAST = 256;

  private float[] costs = new float[LEAST];
  private byte[] slots = new byte[LEAST];
  private long[] lost = new long[LEAST];

  Memory() {
    Arrays.fill(costs, Float.NaN);
  }

  boolean isKnown(int state) {
    return state < costs.length && !Float.isNaN(costs[state]);
  }

  /** {@return the cost; infinite if the shape does not fit} */
  float cost(int state) {
    return costs[state];
  }

  int slot(int state) {
    return slots[state];
  }

  long lost(int state) {
    return lost[state];
  }

  void put(int state, float cost, int slot, long lostBits) {
    if (state >= costs.length) {
      int before = costs.length;
      int length = Math.max(2 * before, state + 1);
      costs = Arrays.copyOf(costs, length);
      Arrays.fill(costs, before, length, Float.NaN);
      slots = Arrays.copyOf(slots, length);
      lost = Arrays.copyOf(lost, length);
    }
    costs[state] = cost;
    slots[state] = (byte) slot;
    lost[state] = lostBits;
  }
}
