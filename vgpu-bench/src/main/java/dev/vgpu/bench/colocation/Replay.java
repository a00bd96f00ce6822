package dev.vgpu.bench.colocation;

import dev.vgpu.bench.harness.Child;
import dev.vgpu.bench.harness.NanoClock;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;

/** Replays requests beside offline programs. */
final class Replay {
  private static final long WARM_UP_MS = 300;
  private static final long LEAD_NS = 30_000_000;

  private final Bed bed;
  private final boolean bare;
  private final long graceNs;

  /**
   * Prepares replays.
   *
   * @param bed the test bed
   * @param mode how the programs share the GPU
   * @param graceNs how long requests are still served after the last arrival
   */
  Replay(Bed bed, Mode mode, long graceNs) {
    this.bed = bed;
    this.bare = mode == Mode.UNCONTROLLED;
    this.graceNs = graceNs;
  }

  /** Replays requests and adds the outcome. */
  void run(Arrivals arrivals, int trainers, Kernels kernels, Outcome outcome)
      throws InterruptedException {
    Path in = bed.node().file("requests");
    Path out = bed.node().file("served");
    arrivals.write(in);
    List<Trainer> offline = new ArrayList<>();
    try (Child online =
        bed.node().start(bed.online(bare), "serve", in.toString(), out.toString())) {
      online.awaitReady();
      List<Long> pids = new ArrayList<>(List.of(online.pid()));
      for (int i = 0; i < trainers; i++) {
        Trainer trainer =
            Trainer.open(
                bed.node(),
                bed.offline(i, bare),
                Integer.toString(i),
                kernels.leastNs(),
                kernels.mostNs());
        offline.add(trainer);
        pids.add(trainer.pid());
        trainer.start();
      }
      NanoClock.sleepMillis(WARM_UP_MS);
      long seat = bed.pool().child().pid();
      long limitNs = arrivals.lengthNs() + graceNs;
      long switchesBefore = bed.pool().switches();
      Outcome.Processors before = Outcome.Processors.read(seat, pids);
      long t0Ns = NanoClock.nanoTime() + LEAD_NS;
      online.ask("go " + t0Ns + " " + limitNs);
      // The program answers at its last request; then only the offline programs run.
      long leftNs = t0Ns + arrivals.lengthNs() - NanoClock.nanoTime();
      NanoClock.sleepMillis(Math.max(0, leftNs / 1_000_000));
      outcome.processors(before, Outcome.Processors.read(seat, pids));
      outcome.switches(bed.pool().switches() - switchesBefore);
      for (Trainer trainer : offline) {
        trainer.finish();
      }
      record(arrivals, out, limitNs, t0Ns, offline, outcome);
    }
  }

  private static void record(
      Arrivals arrivals,
      Path out,
      long limitNs,
      long t0Ns,
      List<Trainer> offline,
      Outcome outcome) {
    List<Double> latenciesMs = new ArrayList<>();
    int unfinished = 0;
    long servedNs = 0;
    long lastNs = arrivals.lengthNs();
    List<String> lines = lines(out);
    for (int i = 0; i < lines.size(); i++) {
      String[] words = lines.get(i).split(" ", -1);
      long dueNs = Long.parseLong(words[0]);
      long endNs = Long.parseLong(words[2]);
      if (endNs == 0) {
        unfinished++; // it took longer than the grace period
        latenciesMs.add((limitNs - dueNs) / 1e6);
        lastNs = Math.max(lastNs, limitNs);
      } else {
        latenciesMs.add((endNs - dueNs) / 1e6);
        lastNs = Math.max(lastNs, endNs);
        servedNs += arrivals.requests().get(i).serviceNs();
      }
    }
    outcome.online(latenciesMs, unfinished, servedNs);
    double workNs = 0;
    long longestNs = 0;
    for (Trainer trainer : offline) {
      workNs += trainer.workNs(t0Ns, t0Ns + lastNs);
      longestNs = Math.max(longestNs, trainer.longestNs());
    }
    outcome.window((double) lastNs, workNs, longestNs);
  }

  private static List<String> lines(Path file) {
    try {
      List<String> lines = Files.readAllLines(file);
      Files.delete(file);
      return lines;
    } catch (IOException e) {
      throw new UncheckedIOException("cannot read " + file, e);
    }
  }
}
