package dev.vgpu.bench.trace;

import dev.vgpu.simulation.trace.Trace;
import dev.vgpu.simulation.trace.TraceRequest;
import java.time.format.DateTimeFormatter;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;

/**
 * The part of a trace that is replayed, scaled in time so that it uses a stated part of the device.
 * Immutable.
 *
 * @param trace the trace
 * @param schedule the requests to send
 * @param traceLengthNs the length of the part in the trace, from its start; a part longer than the
 *     trace repeats it
 * @param expectedLoad the part of the device that it is expected to use, above 0
 * @param meanCostNs the mean device time of a request that runs alone
 */
public record Replay(
    Trace trace, Schedule schedule, long traceLengthNs, double expectedLoad, double meanCostNs) {
  private static final DateTimeFormatter TIME =
      DateTimeFormatter.ofPattern("HH:mm:ss", Locale.ROOT);

  /**
   * Chooses the part and the scale: from the trace's start, as many requests as make up the load.
   *
   * @param trace the trace
   * @param costs the device time of a request by its length
   * @param load the part of the device that the requests shall use, above 0, up to 1
   * @param lengthNs how long the replay takes
   * @param path where to send the requests
   * @return the replay, with at least one request
   */
  public static Replay of(Trace trace, CostCurve costs, double load, long lengthNs, String path) {
    List<TraceRequest> requests = trace.requests();
    double budgetNs = load * lengthNs;
    double spentNs = 0;
    int count = 0;
    while (count == 0 || spentNs < budgetNs) {
      spentNs += costs.costNs(tokens(requests, count));
      count++;
    }
    long endNs = arrivalNs(requests, count);
    double scale = lengthNs / (double) endNs;
    Passages passages = new Passages();
    List<ScheduledRequest> scheduled = new ArrayList<>();
    for (int i = 0; i < count; i++) {
      long arrivalNs = Math.min(lengthNs - 1, (long) (arrivalNs(requests, i) * scale));
      scheduled.add(new ScheduledRequest(arrivalNs, path, passages.of(tokens(requests, i), i)));
    }
    return new Replay(
        trace, new Schedule(scheduled, lengthNs), endNs, spentNs / lengthNs, spentNs / count);
  }

  /** {@return how many times faster than in the trace requests arrive} */
  public double speed() {
    return traceLengthNs / (double) schedule.lengthNs();
  }

  /** {@return the trace, its length in seconds and the speed-up, in words} */
  public String description() {
    return String.format(
        Locale.ROOT,
        "%s, %s to %s (%d requests in %.0f s), played %.1f times as fast",
        trace.name(),
        TIME.format(trace.start()),
        TIME.format(trace.start().plusNanos(traceLengthNs)),
        schedule.requests().size(),
        traceLengthNs / 1e9,
        speed());
  }

  private static int tokens(List<TraceRequest> requests, int index) {
    return Passages.tokens(requests.get(index % requests.size()).contextTokens());
  }

  /** The arrival in the repeated trace, which repeats one second after its last request. */
  private static long arrivalNs(List<TraceRequest> requests, int index) {
    long roundNs = requests.get(requests.size() - 1).arrivalNs() + 1_000_000_000L;
    int round = index / requests.size();
    return round * roundNs + requests.get(index % requests.size()).arrivalNs();
  }
}
