package dev.vgpu.bench.demo.figure;

import dev.vgpu.bench.trace.CostCurve;
import dev.vgpu.bench.trace.Passages;
import dev.vgpu.bench.trace.Schedule;
import dev.vgpu.bench.trace.ScheduledRequest;
import java.util.ArrayList;
import java.util.List;
import java.util.SplittableRandom;

/**
 * Six models in one JVM with unequal shares. All get steady requests; for some seconds two of them
 * also get a burst that by itself exceeds the capacity of the device.
 */
public final class SixModels {
  /**
   * A model.
   *
   * @param name its name
   * @param percent its share
   * @param hasBurst whether the burst goes to it
   */
  public record Model(String name, int percent, boolean hasBurst) {
    String path() {
      return "/models/" + name + "/embed";
    }
  }

  /** The models; their shares add up to 100. */
  public static final List<Model> MODELS =
      List.of(
          new Model("search", 30, true),
          new Model("rank", 20, false),
          new Model("chat", 15, false),
          new Model("tags", 15, false),
          new Model("spam", 10, true),
          new Model("dedup", 10, false));

  /** The part of the device that the steady requests to one model use. */
  static final double STEADY_LOAD = 0.04;

  /** The part of the device that the burst to one model would use. */
  static final double BURST_LOAD = 0.65;

  private static final int STEADY_TOKENS = Passages.MAX_PASSAGE_TOKENS;
  // Long enough that the burst has some dozens of requests, on a fast device too.
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
  public static Schedule schedule(
      CostCurve costs, long lengthNs, long burstFromNs, long burstToNs) {
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

  /** Collects requests; deterministic. */
  private record Stream(
      List<ScheduledRequest> requests, SplittableRandom random, Passages passages) {
    /** Adds independent arrivals (a Poisson process). */
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
