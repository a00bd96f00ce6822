package dev.vgpu.bench.command;

import static org.assertj.core.api.Assertions.assertThat;

import dev.vgpu.bench.harness.NanoClock;
import java.nio.file.Path;
import java.util.List;
import java.util.concurrent.TimeUnit;
import java.util.function.BooleanSupplier;

/** Starts and awaits the processes of this package's tests. */
final class Commands {
  private static final long TIMEOUT_NS = TimeUnit.SECONDS.toNanos(180);

  private Commands() {}

  /** {@return the command line of a JVM with the class path of the tests} */
  static List<String> java() {
    return List.of(
        Path.of(System.getProperty("java.home"), "bin", "java").toString(),
        "-XX:TieredStopAtLevel=1",
        "-XX:+UseSerialGC",
        "-cp",
        System.getProperty("java.class.path"));
  }

  /** Waits until a condition holds. */
  static void await(BooleanSupplier condition, Object otherwise) throws InterruptedException {
    long endNs = NanoClock.nanoTime() + TIMEOUT_NS;
    while (!condition.getAsBoolean()) {
      assertThat(NanoClock.nanoTime()).as("%s", otherwise).isLessThan(endNs);
      NanoClock.sleepMillis(20);
    }
  }
}
