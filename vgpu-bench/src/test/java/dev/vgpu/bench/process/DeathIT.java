package dev.vgpu.bench.process;

import static org.assertj.core.api.Assertions.assertThat;

import dev.vgpu.bench.harness.Answer;
import dev.vgpu.bench.harness.Child;
import dev.vgpu.bench.harness.NanoClock;
import dev.vgpu.bench.harness.Node;
import dev.vgpu.bench.harness.PoolProcess;
import dev.vgpu.testing.TestSeed;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.Set;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;

/** Killing or stopping a process at any moment costs the others nothing but time. */
class DeathIT {
  private static final int EVENTS = 60;

  private Node node;
  private PoolProcess pool;

  @BeforeEach
  void open() throws Exception {
    node = Node.open(Map.of());
    pool = node.openPool();
  }

  @AfterEach
  void close() {
    System.err.print(node.errors());
    node.close();
  }

  @Test
  void killedAndStoppedProcessesGiveEveryByteBackAndFailNobody() throws Exception {
    Map<String, String> other = Tenants.burst(pool, "other", 30);
    Map<String, String> struck = Tenants.burst(pool, "struck", 30);
    Child observer = Tenants.observer(node, other, Tenants.QUOTA);
    List<Child> survivors =
        List.of(
            Tenants.load(node, other).awaitReady(),
            Tenants.load(node, struck).awaitReady(),
            churner(other, 1).awaitReady());
    survivors.get(2).ask("churn");
    Random random = TestSeed.random();
    for (int i = 0; i < EVENTS; i++) {
      strike(random, random.nextBoolean() ? struck : other, i);
    }
    Tenants.assertAllGoOn(survivors.subList(0, 2));
    assertThat(survivors.get(2).ask("stop").whole("error")).isZero();
    Tenants.kill(survivors);
    Tenants.assertAllIsBack(pool, observer);
  }

  private Child churner(Map<String, String> place, int seed) {
    return node.start(
        place,
        "churn",
        Long.toString(Tenants.QUOTA.bytes() / 4),
        "4",
        node.file("witness").toString(),
        Integer.toString(seed));
  }

  /** Starts one process and kills it: during start-up, while it runs, or while it is stopped. */
  private void strike(Random random, Map<String, String> place, int number) throws Exception {
    Child victim = random.nextBoolean() ? Tenants.load(node, place) : churner(place, number + 2);
    if (random.nextInt(3) == 0) {
      NanoClock.sleepMillis(random.nextInt(15)); // at a random point of its start-up
    } else {
      victim.awaitReady();
      if (random.nextBoolean()) {
        victim.tell("churn");
      }
      NanoClock.sleepMillis(random.nextInt(30));
    }
    if (random.nextInt(3) == 0) {
      victim.signal("STOP");
      NanoClock.sleepMillis(random.nextInt(40));
      if (random.nextBoolean()) {
        victim.signal("CONT");
        NanoClock.sleepMillis(random.nextInt(10));
      }
    }
    victim.kill();
  }

  @Test
  void stoppedProcessHoldsNobodyUp() throws Exception {
    Map<String, String> other = Tenants.burst(pool, "other", 30);
    Map<String, String> struck = Tenants.burst(pool, "struck", 30);
    List<Child> survivors =
        List.of(Tenants.load(node, other).awaitReady(), Tenants.load(node, struck).awaitReady());
    List<Child> stopped = new ArrayList<>();
    for (int i = 0; i < 4; i++) {
      Child victim = Tenants.load(node, i % 2 == 0 ? struck : other).awaitReady();
      NanoClock.sleepMillis(7L * i);
      victim.signal("STOP");
      stopped.add(victim);
      Tenants.assertAllGoOn(survivors);
    }
    for (Child victim : stopped) {
      victim.signal("CONT");
    }
    Tenants.assertAllGoOn(stopped);
    Tenants.assertAllGoOn(survivors);
  }

  @Test
  void quotaIsExactUnderFourProcessesOfFourThreads() throws Exception {
    Map<String, String> place = Tenants.bestEffort(pool, "exact");
    Child observer = Tenants.observer(node, place, Tenants.QUOTA);
    List<Child> programs = new ArrayList<>();
    for (int i = 0; i < 4; i++) {
      programs.add(
          node.start(
              place,
              "churn",
              Long.toString(Tenants.QUOTA.bytes()),
              "4",
              node.file("sum").toString(),
              Integer.toString(i + 1)));
    }
    for (Child program : programs) {
      program.awaitReady();
    }
    long contexts = observer.ask("read").whole("now");
    for (String order : List.of("churn", "fill")) {
      for (Child program : programs) {
        program.ask(order);
      }
      NanoClock.sleepMillis(2_000);
    }
    long refused = 0;
    for (Child program : programs) {
      Answer answer = program.ask("stop");
      refused += answer.whole("refused");
      assertThat(answer.whole("error")).isZero();
      assertThat(answer.whole("peak") + contexts).isLessThanOrEqualTo(Tenants.QUOTA.bytes());
    }
    assertThat(refused).as("the quota was reached").isPositive();
    assertThat(observer.ask("read").whole("over")).isZero();
    Tenants.kill(programs);
    Tenants.assertAllIsBack(pool, observer);
  }

  @Test
  void forkWithoutExecNeitherHarmsTheParentNorKeepsItsMemory() throws Exception {
    Map<String, String> place = Tenants.bestEffort(pool, "forked");
    Child observer = Tenants.observer(node, place, Tenants.QUOTA);
    Child parent = node.start(place, "fork");
    Set<String> lines = new HashSet<>();
    long child = 0;
    for (int i = 0; i < 2; i++) {
      Answer answer = parent.answer();
      lines.add(answer.line().split(" ", 2)[0]);
      child = answer.line().startsWith("parent") ? answer.whole("child") : child;
    }
    assertThat(lines).containsExactlyInAnyOrder("parent", "child");
    assertThat(parent.ask("go on").line()).isEqualTo("alloc 0");
    ProcessHandle forked = ProcessHandle.of(child).orElseThrow();
    parent.kill();
    try {
      // The child inherited the parent's sockets; the parent's memory must be released anyway.
      long tries = 500;
      while (Tenants.lease(pool, "forked").path("memory").asLong() >= 64L << 20) {
        assertThat(tries--).as("%s", pool.leases()).isPositive();
        NanoClock.sleepMillis(10);
      }
      assertThat(forked.isAlive()).isTrue();
    } finally {
      forked.destroyForcibly();
    }
    Tenants.assertAllIsBack(pool, observer);
  }
}
