package dev.vgpu.testing;

import com.sun.management.ThreadMXBean;
import java.lang.management.ManagementFactory;
import java.util.Arrays;
import java.util.Locale;

/**
 * What a call costs its thread in the steady state.
 *
 * @param ns of processor time, the median of the rounds; a test must not judge it, since it depends
 *     on the machine
 * @param bytes allocated by the thread in the least round: in others, code is still interpreted
 */
public record CallCost(double ns, double bytes) {
  private static final int ROUNDS = 21;

  /** A call. */
  public interface Call {
    /**
     * Makes it.
     *
     * @throws Exception if it fails, and with it the measurement
     */
    void run() throws Exception;
  }

  /**
   * Measures several ways to make a call, in turns.
   *
   * @param calls how many make up a round of one way
   * @param ways to make the call
   * @return the cost of each way
   * @throws Exception if a call fails
   */
  public static CallCost[] of(int calls, Call... ways) throws Exception {
    double[][] ns = new double[ways.length][ROUNDS];
    double[][] bytes = new double[ways.length][ROUNDS];
    ThreadMXBean threads = (ThreadMXBean) ManagementFactory.getThreadMXBean();
    for (int round = 0; round < ROUNDS; round++) {
      for (int way = 0; way < ways.length; way++) {
        long allocated = threads.getCurrentThreadAllocatedBytes();
        long beganNs = threads.getCurrentThreadCpuTime();
        for (int i = 0; i < calls; i++) {
          ways[way].run();
        }
        ns[way][round] = (double) (threads.getCurrentThreadCpuTime() - beganNs) / calls;
        bytes[way][round] = (double) (threads.getCurrentThreadAllocatedBytes() - allocated) / calls;
      }
    }
    CallCost[] costs = new CallCost[ways.length];
    for (int way = 0; way < ways.length; way++) {
      Arrays.sort(ns[way]);
      Arrays.sort(bytes[way]);
      costs[way] = new CallCost(ns[way][ROUNDS / 2], bytes[way][0]);
    }
    return costs;
  }

  /** {@return what this costs more than another} */
  public CallCost above(CallCost other) {
    return new CallCost(ns - other.ns, bytes - other.bytes);
  }

  @Override
  public String toString() {
    return String.format(Locale.ROOT, "%.0f ns, %.1f bytes", ns, bytes);
  }
}
