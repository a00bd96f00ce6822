package dev.vgpu.bench.colocation;

import dev.vgpu.bench.harness.ProcessorTime;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;

/** What replays of one kind came to, all together. Confined to one thread. */
final class Outcome {
  private final List<Double> latenciesMs = new ArrayList<>();
  private int unfinished;
  private double windowNs;
  private double onlineNs;
  private double offlineNs;
  private long longestKernelNs;
  private long switches;
  private double seatNs;
  private double monitorsNs;
  private double programsNs;
  private double othersNs;

  /** Readings of processors' time at one moment. */
  record Processors(long seatNs, long monitorsNs, long programsNs, long machineNs) {
    /** {@return now} */
    static Processors read(long seat, List<Long> programs) {
      long monitorsNs = 0;
      long programsNs = 0;
      for (long program : programs) {
        monitorsNs += ProcessorTime.ofThreadsNs(program, "vgpu-monitor");
        programsNs += ProcessorTime.ofProcessNs(program);
      }
      return new Processors(
          ProcessorTime.ofProcessNs(seat), monitorsNs, programsNs, ProcessorTime.ofMachineNs());
    }
  }

  void online(List<Double> replayedMs, int notServed, long serviceNs) {
    latenciesMs.addAll(replayedMs);
    unfinished += notServed;
    onlineNs += serviceNs;
  }

  void window(double lengthNs, double workNs, long longestNs) {
    windowNs += lengthNs;
    offlineNs += workNs;
    longestKernelNs = Math.max(longestKernelNs, longestNs);
  }

  void switches(long count) {
    switches += count;
  }

  void processors(Processors before, Processors after) {
    double ownNs = after.seatNs - before.seatNs + (double) (after.programsNs - before.programsNs);
    seatNs += after.seatNs - before.seatNs;
    monitorsNs += after.monitorsNs - before.monitorsNs;
    programsNs += after.programsNs - before.programsNs;
    othersNs += Math.max(0, after.machineNs - before.machineNs - ownNs);
  }

  int requests() {
    return latenciesMs.size();
  }

  int unfinished() {
    return unfinished;
  }

  /** {@return the latency that a percentage of the requests do not exceed, in ms} */
  double percentileMs(double percent) {
    double[] sorted = latenciesMs.stream().mapToDouble(Double::doubleValue).sorted().toArray();
    return sorted.length == 0 ? Double.NaN : sorted[rank(percent)];
  }

  /** {@return how many requests took longer than the percentile} */
  int beyond(double percent) {
    return latenciesMs.isEmpty() ? 0 : requests() - 1 - rank(percent);
  }

  private int rank(double percent) {
    return Math.max(0, (int) Math.ceil(requests() * percent / 100 - 1e-9) - 1);
  }

  /**
   * {@return how much longer the same requests took than elsewhere, in ms: a percentile of the
   * differences}
   */
  double addedMs(Outcome reference, double percent) {
    double[] added = new double[Math.min(requests(), reference.requests())];
    for (int i = 0; i < added.length; i++) {
      added[i] = latenciesMs.get(i) - reference.latenciesMs.get(i);
    }
    Arrays.sort(added);
    int rank = Math.max(0, (int) Math.ceil(added.length * percent / 100) - 1);
    return added.length == 0 ? Double.NaN : added[rank];
  }

  /**
   * {@return how long nobody used the GPU, for each request, in ms: what handing it over and back
   * costs where there is always offline work}
   */
  double lostMs() {
    return (windowNs - onlineNs - offlineNs) / 1e6 / requests();
  }

  double windowS() {
    return windowNs / 1e9;
  }

  double onlineBusy() {
    return onlineNs / windowNs;
  }

  /** {@return offline work done, of what the time that online work leaves would have allowed} */
  double offlineOfIdeal() {
    return offlineNs / (windowNs - onlineNs);
  }

  double longestKernelMs() {
    return longestKernelNs / 1e6;
  }

  double switchesPerS() {
    return switches / windowS();
  }

  /** {@return processor time of the seat, in percent of one core} */
  double seatPercent() {
    return 100 * seatNs / windowNs;
  }

  /** {@return the same of the hooks' own threads} */
  double monitorsPercent() {
    return 100 * monitorsNs / windowNs;
  }

  /** {@return the same of the programs, with the hooks in them} */
  double programsPercent() {
    return 100 * programsNs / windowNs;
  }

  /** {@return the same of all else that the machine did meanwhile} */
  double othersPercent() {
    return 100 * othersNs / windowNs;
  }
}
