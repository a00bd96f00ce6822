package dev.vgpu.cli.demo;

import dev.vgpu.cli.trace.CostCurve;
import dev.vgpu.cli.trace.Passages;
import dev.vgpu.cli.trace.Schedule;
import dev.vgpu.cli.trace.ScheduledRequest;
import java.util.ArrayList;
import java.util.List;
import java.util.SplittableRandom;

/**
 * Six models in one JVM with uneven shares: steady requests to all, and for some seconds a burst to
 * two of them that alone would fill the device more than once.
 */
final class SixModels {
  /**
   * A model.
   *
   * @param name its name
   * @param percent its share
   * @param hasBurst whether the burst goes to it
   */
  record Model(String name, int percent, boolean hasBurst) {
    String path() {
      return "/models/" + name + "/embed";
    }
  }

  /** The models; their shares are 100 together. */
  static final List<Model> MODELS =
      List.of(
          new Model("search", 30, true),
          new Model("rank", 20, false),
          new Model("chat", 15, false),
          new Model("tags", 15, false),
          new Model("spam", 10, true),
          new Model("dedup", 10, false));

  /** What the steady requests to one model use of the device. */
  static final double STEADY_LOAD = 0.04;

  /** What the burst to one model would use of the device. */
  static final double BURST_LOAD = 0.65;

  private static final int STEADY_TOKENS = Passages.MAX_PASSAGE_TOKENS;
  // Long enough that some dozens of requests make the burst, on a fast device too.
  private static final double BURST_REQUEST_NS = 40e6;
  private static final long SEED = 2023;

  private SixModels() {}

  /**
   * {@return the requests}
   *
   * @param costs what a request costs
   * @param lengthNs how long, in all
   * @param burstFromNs when the burst begins
   * @param burstToNs when it ends
   */
  static Schedule schedule(CostCurve costs, long lengthNs, long burstFromNs, long burstToNs) {
    SplittableRandom random = new SplittableRandom(SEED);
    List<ScheduledRequest> requests = new ArrayList<>();
    Stream stream = new Stream(requests, random, new Passages());
    int burstTokens = burstTokens(costs);
    for (Model model : MODELS) {
      double steadyGapNs = costs.costNs(STEADY_TOKENS) / STEADY_LOAD;
      stream.addRandom(model.path(), STEADY_TOKENS, steadyGapNs, lengthNs);
      if (model.hasBurst()) {
        double burstGapNs = costs.costNs(burstTokens) / BURST_LOAD;
        stream.addEven(model.path(), burstTokens, burstGapNs, burstFromNs, burstToNs);
      }
    }
    return new Schedule(requests, lengthNs);
  }

  private static int burstTokens(CostCurve costs) {
    int passages = 4;
    while (passages < Passages.MAX_PASSAGES
        && costs.costNs(passages * Passages.MAX_PASSAGE_TOKENS) < BURST_REQUEST_NS) {
      passages *= 2;
    }
    return passages * Passages.MAX_PASSAGE_TOKENS;
  }

  /** Collects requests; the same in every run. */
  private record Stream(
      List<ScheduledRequest> requests, SplittableRandom random, Passages passages) {
    /** Arrivals that know nothing of each other (Poisson). */
    void addRandom(String path, int tokens, double meanGapNs, long toNs) {
      double arrivalNs = 0;
      while ((arrivalNs += -Math.log(1 - random.nextDouble()) * meanGapNs) < toNs) {
        add(path, tokens, arrivalNs);
      }
    }

    void addEven(String path, int tokens, double gapNs, long fromNs, long toNs) {
      for (double arrivalNs = fromNs; arrivalNs < toNs; arrivalNs += gapNs) {
        add(path, tokens, arrivalNs);
      }
    }

    private void add(String path, int tokens, double arrivalNs) {
      requests.add(
          new ScheduledRequest((long) arrivalNs, path, passages.of(tokens, requests.size())));
    }
  }
}
