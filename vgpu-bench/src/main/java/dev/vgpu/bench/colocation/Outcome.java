package dev.vgpu.bench.colocation;

import dev.vgpu.bench.harness.ProcessorTime;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;

/** The combined outcome of all replays of one kind. Confined to one thread. */
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

  /** Processor time of several groups, read at one moment. */
  record Processors(long seatNs, long monitorsNs, long programsNs, long machineNs) {
    /** {@return the current readings} */
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

  /** {@return a percentile of how much longer each request took than in a reference, in ms} */
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
   * {@return the time in which nothing used the GPU, per request, in ms: the cost of handing it
   * over and back if there is always offline work}
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

  /** {@return the offline work done, relative to the GPU time that online work left} */
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

  /** {@return processor time of the hooks' own threads, in percent of one core} */
  double monitorsPercent() {
    return 100 * monitorsNs / windowNs;
  }

  /** {@return processor time of the programs, their hooks included, in percent of one core} */
  double programsPercent() {
    return 100 * programsNs / windowNs;
  }

  /** {@return processor time of everything else on the machine, in percent of one core} */
  double othersPercent() {
    return 100 * othersNs / windowNs;
  }
}
