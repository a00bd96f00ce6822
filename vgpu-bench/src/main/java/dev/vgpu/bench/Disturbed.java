package dev.vgpu.bench;

import dev.vgpu.bench.harness.Answer;
import dev.vgpu.bench.harness.Child;
import dev.vgpu.bench.harness.NanoClock;
import dev.vgpu.bench.harness.Node;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Random;

/** Programs that shall not notice anything, and others that are killed and stopped beside them. */
final class Disturbed implements AutoCloseable {
  private static final String[] LOAD = {"load", "200000", "132", "1"};
  private static final long EVENT_MS = 125;
  private static final long LONGEST_STOP_MS = 80;
  private static final long START_UP_MS = 12;

  private final Node node;
  private final List<Map<String, String>> victimPlaces;
  private final List<Child> survivors = new ArrayList<>();
  private final List<Child> victims = new ArrayList<>();
  private final Child noise;
  private final Random random = new Random(11);
  private final Map<Child, Double> kernels = new HashMap<>();

  /** What a phase showed. */
  record Reading(double launchMs, double syncMs, double machineMs, double kernelsPerSecond) {
    double worstMs() {
      return Math.max(launchMs, syncMs);
    }
  }

  Disturbed(
      Node node, List<Map<String, String>> survivorPlaces, List<Map<String, String>> victimPlaces)
      throws InterruptedException {
    this.node = node;
    this.victimPlaces = victimPlaces;
    this.noise = node.start(Map.of(), "noise").awaitReady();
    for (Map<String, String> place : survivorPlaces) {
      survivors.add(node.start(place, LOAD).awaitReady());
    }
    for (Map<String, String> place : victimPlaces) {
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

  /** Lets so many events pass, in the time of as many as given. */
  Reading phase(Report report, String name, int events, int length) throws InterruptedException {
    report.progress("stall, " + name);
    read();
    noise.ask("read");
    long beginNs = NanoClock.nanoTime();
    for (int event = 0; event < events; event++) {
      awaitMs(beginNs, event * EVENT_MS + random.nextLong(EVENT_MS / 4));
      disturb(random.nextInt(victims.size()));
    }
    awaitMs(beginNs, length * EVENT_MS);
    double seconds = (NanoClock.nanoTime() - beginNs) / 1e9;
    double[] seen = read();
    Reading reading =
        new Reading(
            seen[0], seen[1], noise.ask("read").number("worst_ns") / 1e6, seen[2] / seconds);
    report.line(
        "  %-36s%14.2f%14.2f%14.2f%14.0f%14.2f",
        name,
        reading.launchMs(),
        reading.syncMs(),
        reading.worstMs(),
        reading.kernelsPerSecond(),
        reading.machineMs());
    return reading;
  }

  private static void awaitMs(long beginNs, long millis) throws InterruptedException {
    NanoClock.sleepMillis(Math.max(0, millis - (NanoClock.nanoTime() - beginNs) / 1_000_000));
  }

  private void disturb(int index) throws InterruptedException {
    Child victim = victims.get(index);
    Map<String, String> place = victimPlaces.get(index);
    switch (random.nextInt(4)) {
      case 0 -> { // stopped wherever it is, and goes on
        victim.signal("STOP");
        NanoClock.sleepMillis(random.nextLong(LONGEST_STOP_MS));
        victim.signal("CONT");
      }
      case 1 -> { // stopped, then killed as it stands
        victim.signal("STOP");
        NanoClock.sleepMillis(random.nextLong(LONGEST_STOP_MS));
        victim.kill();
        victims.set(index, victim(place));
      }
      case 2 -> { // killed while it starts up
        Child starting = victim(place);
        NanoClock.sleepMillis(random.nextLong(START_UP_MS));
        starting.kill();
      }
      default -> {
        victim.kill();
        victims.set(index, victim(place));
      }
    }
  }

  private double[] read() throws InterruptedException {
    double[] worst = new double[3];
    for (Child survivor : survivors) {
      Answer answer = survivor.ask("read");
      if (answer.whole("error") != 0) {
        throw new IllegalStateException("a program failed: " + answer.line());
      }
      double openMs = answer.number("open_ns") / 1e6;
      worst[0] = Math.max(worst[0], answer.number("worst_launch_ns") / 1e6);
      worst[1] = Math.max(worst[1], Math.max(openMs, answer.number("worst_sync_ns") / 1e6));
      worst[2] += answer.number("kernels") - kernelsBefore(survivor, answer);
    }
    return worst;
  }

  private double kernelsBefore(Child survivor, Answer answer) {
    Double before = kernels.put(survivor, answer.number("kernels"));
    return before == null ? answer.number("kernels") : before;
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
  }
}
