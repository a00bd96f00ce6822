package dev.vgpu.bench.trace;

import java.util.Map;
import java.util.NavigableMap;
import java.util.TreeMap;

/**
 * The device time of a request by its length: measured at some lengths, interpolated linearly
 * between them, and proportional beyond the longest. Immutable.
 */
public final class CostCurve {
  private final NavigableMap<Integer, Long> costNsByTokens;

  /**
   * Creates a curve.
   *
   * @param costNsByTokens the measurements; at least one length, lengths and costs above 0
   * @throws IllegalArgumentException if empty, or if a length or cost is not above 0
   */
  public CostCurve(Map<Integer, Long> costNsByTokens) {
    this.costNsByTokens = new TreeMap<>(costNsByTokens);
    if (this.costNsByTokens.isEmpty()) {
      throw new IllegalArgumentException("a cost curve has no point");
    }
    this.costNsByTokens.forEach(
        (tokens, costNs) -> {
          if (tokens <= 0 || costNs <= 0) {
            throw new IllegalArgumentException(
                "a cost is not above 0: tokens=" + tokens + " costNs=" + costNs);
          }
        });
  }

  /**
   * {@return the device time of a request, in nanoseconds}
   *
   * @param tokens the request's length; above 0
   */
  public double costNs(int tokens) {
    Map.Entry<Integer, Long> below = costNsByTokens.floorEntry(tokens);
    Map.Entry<Integer, Long> above = costNsByTokens.ceilingEntry(tokens);
    if (below == null) {
      return costNsByTokens.firstEntry().getValue();
    }
    if (above == null) {
      return (double) below.getValue() * tokens / below.getKey();
    }
    if (above.getKey().equals(below.getKey())) {
      return below.getValue();
    }
    double part = (tokens - below.getKey()) / (double) (above.getKey() - below.getKey());
    return below.getValue() + part * (above.getValue() - below.getValue());
  }
}
