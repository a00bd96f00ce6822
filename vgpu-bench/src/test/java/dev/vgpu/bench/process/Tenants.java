package dev.vgpu.bench.process;

import static org.assertj.core.api.Assertions.assertThat;

import com.fasterxml.jackson.databind.JsonNode;
import dev.vgpu.bench.harness.Answer;
import dev.vgpu.bench.harness.Child;
import dev.vgpu.bench.harness.NanoClock;
import dev.vgpu.bench.harness.Node;
import dev.vgpu.bench.harness.PoolProcess;
import dev.vgpu.request.MemorySize;
import dev.vgpu.request.PreemptionClass;
import dev.vgpu.request.SharePolicy;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;

/** The tenants of the tests of death and hostility, and assertions about them. */
final class Tenants {
  static final MemorySize QUOTA = MemorySize.ofGibibytes(1);

  private Tenants() {}

  static Map<String, String> bestEffort(PoolProcess pool, String name) throws Exception {
    return pool.acquire(name, SharePolicy.BEST_EFFORT, 0, PreemptionClass.NEARLINE, QUOTA);
  }

  static Map<String, String> burst(PoolProcess pool, String name, int percent) throws Exception {
    return pool.acquire(name, SharePolicy.BURST_SHARE, percent, PreemptionClass.NEARLINE, QUOTA);
  }

  /** A program that launches kernels of 200 µs and waits for each. */
  static Child load(Node node, Map<String, String> place) {
    return node.start(place, "load", "200000", "132", "1", "start");
  }

  /** Every program still launches kernels, and none of its calls has failed. */
  static void assertAllGoOn(List<Child> programs) throws Exception {
    List<Long> before = new ArrayList<>();
    for (Child program : programs) {
      before.add(kernels(program));
    }
    for (int i = 0; i < programs.size(); i++) {
      long deadlineTries = 2_000;
      while (kernels(programs.get(i)) <= before.get(i)) {
        assertThat(deadlineTries--).as("%s hangs", programs.get(i)).isPositive();
        NanoClock.sleepMillis(10);
      }
    }
  }

  static long kernels(Child program) throws Exception {
    Answer answer = program.ask("read");
    assertThat(answer.whole("error")).as("%s: %s", program, answer.line()).isZero();
    return answer.whole("kernels");
  }

  /** Closes the programs' standard input, so that they end normally. */
  static void kill(List<Child> programs) throws Exception {
    for (Child program : programs) {
      program.kill();
    }
  }

  /** According to the ledgers and the GPU's own accounting, no memory is held. */
  static void assertAllIsBack(PoolProcess pool, Child observer) throws Exception {
    long tries = 500;
    while (pool.memoryHeld() > 0 || pool.processes() > 0) {
      assertThat(tries--).as("still held: %s", pool.leases()).isPositive();
      NanoClock.sleepMillis(10);
    }
    tries = 500;
    for (Answer seen = observer.ask("read");
        seen.whole("now") > 0 || seen.whole("processes") > 0;
        seen = observer.ask("read")) {
      assertThat(tries--).as("still on the GPU: %s", seen.line()).isPositive();
      NanoClock.sleepMillis(10);
    }
  }

  static Child observer(Node node, Map<String, String> place, MemorySize limit) throws Exception {
    return node.start(Node.bare(place), "observe", Long.toString(limit.bytes())).awaitReady();
  }

  static JsonNode lease(PoolProcess pool, String name) throws Exception {
    for (JsonNode lease : pool.leases()) {
      if (lease.path("id").asText().startsWith(name)) {
        return lease;
      }
    }
    throw new AssertionError("no lease " + name + " in " + pool.leases());
  }
}
