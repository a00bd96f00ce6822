package dev.vgpu.bench.death;

import dev.vgpu.bench.harness.Answer;
import dev.vgpu.bench.harness.Child;
import dev.vgpu.bench.harness.NanoClock;
import dev.vgpu.bench.harness.Node;
import dev.vgpu.bench.report.Report;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.Map;
import java.util.Random;
import org.jspecify.annotations.Nullable;

/** Programs that must not notice anything, and others that are killed and stopped beside them. */
final class Disturbed implements AutoCloseable {
  private static final String[] LOAD = {"load", "200000", "132", "1"};
  private static final String[] TRACED = {"load", "200000", "132", "1", "trace"};
  private static final long EVENT_MS = 70;
  private static final long LONGEST_STOP_MS = 50;
  private static final int START_UP_US = 12_000;
  private static final int TELL_EVERY = 100;

  /** Two for each virtual GPU: one may be stopped while another is killed. */
  private static final int VICTIMS_OF_A_PLACE = 2;

  private final Node node;
  private final List<Map<String, String>> victimPlaces = new ArrayList<>();
  private final List<Child> survivors = new ArrayList<>();
  private final List<Child> victims = new ArrayList<>();
  private final Child noise;
  private final Child signals;
  private final @Nullable StallTrace trace;
  private final Random random = new Random(11);

  /**
   * The readings of a phase.
   *
   * @param launchMs the longest launch of each survivor
   * @param syncMs the longest wait of each survivor
   * @param machineMs the longest delay with which this machine woke a thread
   * @param kernelsPerSecond of all survivors together
   */
  record Reading(
      List<Double> launchMs, List<Double> syncMs, double machineMs, double kernelsPerSecond) {
    double worstMs(int survivor) {
      return Math.max(launchMs.get(survivor), syncMs.get(survivor));
    }

    double worstMs() {
      return Math.max(Collections.max(launchMs), Collections.max(syncMs));
    }

    /** How much longer than in another phase a program was held up. */
    double addedMs(Reading before, int survivor) {
      return Math.max(0, worstMs(survivor) - before.worstMs(survivor));
    }

    /** The largest such difference of any one program. */
    double addedMs(Reading before) {
      double most = 0;
      for (int i = 0; i < launchMs.size(); i++) {
        most = Math.max(most, addedMs(before, i));
      }
      return most;
    }
  }

  Disturbed(
      Node node,
      List<Map<String, String>> survivorPlaces,
      List<Map<String, String>> victimPlaces,
      @Nullable StallTrace trace)
      throws InterruptedException {
    this.node = node;
    this.trace = trace;
    for (int i = 0; i < VICTIMS_OF_A_PLACE; i++) {
      this.victimPlaces.addAll(victimPlaces);
    }
    this.noise = node.start(Map.of(), "noise").awaitReady();
    this.signals = node.start(Map.of(), "signals").awaitReady();
    for (Map<String, String> place : survivorPlaces) {
      survivors.add(node.start(place, trace == null ? LOAD : TRACED).awaitReady());
    }
    for (Map<String, String> place : this.victimPlaces) {
      victims.add(victim(place).awaitReady());
    }
    for (Child survivor : survivors) {
      survivor.ask("start");
    }
    NanoClock.sleepMillis(1_000);
  }

  private Child victim(Map<String, String> place) {
    return node.start(place, LOAD[0], LOAD[1], LOAD[2], LOAD[3], "start");
  }

  /** Runs {@code events} events, each a stop and a kill, in the time that {@code length} take. */
  Reading phase(Report report, String name, int events, int length) throws InterruptedException {
    report.progress("kill, " + name);
    List<Answer> before = read();
    noise.ask("read");
    if (trace != null) {
      trace.forget(survivors);
    }
    long beginNs = NanoClock.nanoTime();
    for (int event = 0; event < events; event++) {
      if (event > 0 && event % TELL_EVERY == 0) {
        report.progress("kill, " + name + ": " + event + " of " + events);
      }
      awaitMs(beginNs, event * EVENT_MS + random.nextLong(EVENT_MS / 4));
      disturb(random.nextInt(victims.size()), 1 + random.nextInt(victims.size() - 1));
    }
    awaitMs(beginNs, length * EVENT_MS);
    double seconds = (NanoClock.nanoTime() - beginNs) / 1e9;
    List<Answer> answers = read();
    double kernelCount = 0;
    for (int i = 0; i < answers.size(); i++) {
      kernelCount += answers.get(i).number("kernels") - before.get(i).number("kernels");
    }
    Reading reading =
        new Reading(
            answers.stream().map(answer -> answer.number("worst_launch_ns") / 1e6).toList(),
            answers.stream()
                .map(
                    answer ->
                        Math.max(answer.number("worst_sync_ns"), answer.number("open_ns")) / 1e6)
                .toList(),
            noise.ask("read").number("worst_ns") / 1e6,
            kernelCount / seconds);
    report.line(
        "  %-36s%14.2f%14.2f%14.2f%14.0f%14.2f",
        name,
        Collections.max(reading.launchMs()),
        Collections.max(reading.syncMs()),
        reading.worstMs(),
        reading.kernelsPerSecond(),
        reading.machineMs());
    if (trace != null) {
      trace.tell(name, survivors);
    }
    return reading;
  }

  private static void awaitMs(long beginNs, long millis) throws InterruptedException {
    NanoClock.sleepMillis(Math.max(0, millis - (NanoClock.nanoTime() - beginNs) / 1_000_000));
  }

  /** Stops a victim for a while, and meanwhile kills the one that follows it at a distance. */
  private void disturb(int stopped, int apart) throws InterruptedException {
    Child halted = victims.get(stopped);
    signal(halted, "STOP");
    long beginNs = NanoClock.nanoTime();
    long stopMs = random.nextLong(LONGEST_STOP_MS);
    kill((stopped + apart) % victims.size());
    awaitMs(beginNs, stopMs);
    signal(halted, "CONT");
  }

  private void kill(int index) throws InterruptedException {
    Child victim = victims.get(index);
    Map<String, String> place = victimPlaces.get(index);
    switch (random.nextInt(3)) {
      case 0 -> { // stopped, then killed while stopped
        signal(victim, "STOP");
        NanoClock.sleepMicros(random.nextInt(START_UP_US));
        end(victim);
        victims.set(index, victim(place));
      }
      case 1 -> { // killed during start-up
        Child starting = victim(place);
        NanoClock.sleepMicros(random.nextInt(START_UP_US));
        end(starting);
      }
      default -> {
        end(victim);
        victims.set(index, victim(place));
      }
    }
  }

  private void end(Child child) throws InterruptedException {
    strike(child, "KILL");
    child.kill();
  }

  private void strike(Child child, String what) {
    if (trace != null) {
      trace.strike(child, what);
    }
  }

  private void signal(Child child, String name) throws InterruptedException {
    strike(child, name);
    Answer ignored = signals.ask(name + " " + child.pid());
  }

  private List<Answer> read() throws InterruptedException {
    List<Answer> answers = new ArrayList<>();
    for (Child survivor : survivors) {
      Answer answer = survivor.ask("read");
      if (answer.whole("error") != 0) {
        throw new IllegalStateException("a program failed: " + answer.line());
      }
      answers.add(answer);
    }
    return answers;
  }

  @Override
  public void close() {
    for (Child child : survivors) {
      child.close();
    }
    for (Child child : victims) {
      child.close();
    }
    noise.close();
    signals.close();
  }
}
