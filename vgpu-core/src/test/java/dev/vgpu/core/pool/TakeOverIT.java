package dev.vgpu.core.pool;

import static org.assertj.core.api.Assertions.assertThat;

import dev.vgpu.core.pool.SeatProcesses.Child;
import java.util.ArrayList;
import java.util.Collections;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.concurrent.locks.LockSupport;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** The process that holds the seat dies under load. */
@Timeout(300) // it starts dozens of JVMs
class TakeOverIT {
  private static final int TIMES = 20;

  @Test
  void nothingIsLostWhenTheHolderIsKilled() throws Exception {
    List<Double> worstMs = new ArrayList<>();
    try (SeatProcesses node = new SeatProcesses()) {
      Map<Child, String> working = new LinkedHashMap<>();
      for (int i = 0; i < 3; i++) {
        startWorking(node, working);
      }
      for (int i = 0; i < TIMES; i++) {
        for (Map.Entry<Child, String> each : working.entrySet()) {
          awaitProgress(each.getKey(), each.getValue());
          String ignored = each.getKey().ask("worst " + each.getValue());
        }
        Child dead = node.holder();
        String lost = working.remove(dead);
        dead.kill();
        for (Map.Entry<Child, String> each : working.entrySet()) {
          awaitProgress(each.getKey(), each.getValue());
          worstMs.add(Double.parseDouble(each.getKey().ask("worst " + each.getValue())));
          assertThat(each.getKey().ask("failure " + each.getValue())).isEmpty();
        }
        assertThat(node.holder().process.isAlive()).isTrue();
        for (Child child : working.keySet()) {
          String leases;
          do {
            LockSupport.parkNanos(1_000_000);
            leases = child.ask("leases");
          } while (leases.contains(lost)); // its death is noticed a moment later
          assertThat(leases.split(" ")).containsExactlyInAnyOrderElementsOf(working.values());
        }
        assertThat(node.lease(lost)).doesNotExist();
        startWorking(node, working);
      }
    }
    Collections.sort(worstMs);
    System.out.printf(
        Locale.ROOT,
        "take-over under load: longest time without a finished call: median %.1f ms, worst %.1f"
            + " ms%n",
        worstMs.get(worstMs.size() / 2),
        worstMs.get(worstMs.size() - 1));
  }

  private static void startWorking(SeatProcesses node, Map<Child, String> working)
      throws Exception {
    Child child = node.start();
    String id = child.ask("acquire model 30");
    assertThat(working.values()).doesNotContain(id);
    assertThat(child.ask("work " + id + " 200")).isEqualTo("working");
    working.put(child, id);
  }

  private static void awaitProgress(Child child, String id) {
    long before = child.number("calls " + id);
    while (child.number("calls " + id) < before + 3) {
      LockSupport.parkNanos(1_000_000);
    }
  }
}
