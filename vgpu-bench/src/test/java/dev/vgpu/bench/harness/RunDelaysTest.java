package dev.vgpu.bench.harness;

import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.nio.file.Files;
import java.nio.file.Path;
import org.junit.jupiter.api.Test;

class RunDelaysTest {
  /**
   * The shell becomes a program that never collects its child. The child ends only then: a shell
   * collects one that ended before.
   */
  @Test
  void aProcessHasEndedOnceItsFirstThreadIsAZombieOrGone() throws Exception {
    Process parent =
        new ProcessBuilder("sh", "-c", "exec 3<&0; cat <&3 & echo $!; exec sleep 600").start();
    try (var lines = parent.inputReader()) {
      long child = Long.parseLong(lines.readLine());
      Path name = Path.of("/proc", Long.toString(parent.pid()), "comm");
      while (parent.isAlive() && !Files.readString(name).equals("sleep\n")) {
        NanoClock.sleepMillis(1); // ends at the test's time limit; a spin would not
      }
      assertFalse(RunDelays.hasEnded(child), "a process that reads");
      parent.getOutputStream().close();
      while (parent.isAlive() && !RunDelays.states(child).equals("Z")) {
        NanoClock.sleepMillis(1);
      }
      assertTrue(RunDelays.hasEnded(child), "a zombie");
      assertFalse(RunDelays.hasEnded(parent.pid()), "a process that sleeps");
    } finally {
      parent.destroyForcibly().waitFor();
    }
    assertTrue(RunDelays.hasEnded(parent.pid()), "a process that is gone");
  }
}
