package dev.vgpu.bench.harness;

import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import org.junit.jupiter.api.Test;

class RunDelaysTest {
  @Test
  void aProcessHasEndedOnceItsFirstThreadIsAZombieOrGone() throws Exception {
    // The shell becomes a program that never collects its child, which ends at once.
    Process parent = new ProcessBuilder("sh", "-c", "true & echo $!; exec sleep 600").start();
    try (var lines = parent.inputReader()) {
      long child = Long.parseLong(lines.readLine());
      while (!RunDelays.states(child).equals("Z")) {
        Thread.onSpinWait();
      }
      assertTrue(RunDelays.hasEnded(child), "a zombie");
      assertFalse(RunDelays.hasEnded(parent.pid()), "a process that sleeps");
    } finally {
      parent.destroyForcibly().waitFor();
    }
    assertTrue(RunDelays.hasEnded(parent.pid()), "a process that is gone");
  }
}
