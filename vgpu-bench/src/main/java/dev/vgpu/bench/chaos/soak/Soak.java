package dev.vgpu.bench.chaos.soak;

import static java.nio.charset.StandardCharsets.UTF_8;

import dev.vgpu.bench.chaos.ChaosFailure;
import dev.vgpu.bench.harness.NanoClock;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.StandardOpenOption;
import java.util.Locale;
import java.util.Map;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.function.Supplier;
import org.jspecify.annotations.Nullable;

/** A long run in real time: no figure grows, none drifts, and no tenant stands still. */
public final class Soak {
  private static final long BEAT_MS = 200;
  private static final double DISTURB_SECONDS = 1;
  private static final double DISK_SECONDS = 60;
  private static final double TELL_SECONDS = 60;
  private static final long END_SECONDS = 60;

  private final SoakOptions options;
  private final SoakResults results;
  private final CountDownLatch reported = new CountDownLatch(1);
  private long beginNs = NanoClock.nanoTime();
  private volatile boolean ending;

  private Soak(SoakOptions options, SoakResults results) {
    this.options = options;
    this.results = results;
  }

  /**
   * Runs the soak test.
   *
   * @param options the options of {@code vgpu soak}
   * @param surroundings describes the machine
   * @return the exit code: 0 all held, 1 something did not, 2 wrong usage
   * @throws InterruptedException if this thread is interrupted
   * @throws IOException if the results cannot be kept
   */
  public static int run(SoakOptions options, Supplier<Map<String, Object>> surroundings)
      throws InterruptedException, IOException {
    SoakResults results = new SoakResults(options.out);
    if (!options.append && results.areAny()) {
      System.err.println(
          "soak: there are results in " + options.out + ": --append goes on with them");
      return 2;
    }
    Files.createDirectories(options.out);
    results.read();
    return new Soak(options, results).run(surroundings);
  }

  private int run(Supplier<Map<String, Object>> surroundings)
      throws InterruptedException, IOException {
    Thread hook = new Thread(this::end, "end-of-the-soak");
    Runtime.getRuntime().addShutdownHook(hook);
    System.err.printf(
        Locale.ROOT,
        "soak: %.2f h, %d tenants, seed %d, results in %s%n",
        options.seconds() / 3_600,
        options.tenants,
        options.seed,
        options.out.toAbsolutePath());
    @Nullable String failure = null;
    try (SoakWorld world = new SoakWorld(options.tenants, options.seed)) {
      try {
        go(world);
      } catch (ChaosFailure | IllegalStateException e) {
        failure = ending ? null : failed(world, e);
      }
    }
    try {
      SoakReport report = new SoakReport(results, failure, surroundings.get());
      report.write(options.out);
      System.out.print(options.json.isGiven() ? report.json() : report.text());
      return report.held() ? 0 : 1;
    } finally {
      reported.countDown();
    }
  }

  /** On Ctrl-C, reports what was measured. */
  private void end() {
    ending = true;
    try {
      boolean ignored = reported.await(END_SECONDS, TimeUnit.SECONDS);
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
    }
  }

  /** Keeps the output of all processes; the first line is enough for the report. */
  private String failed(SoakWorld world, RuntimeException e) throws IOException {
    String message = String.format(Locale.ROOT, "%.0f s: %s", seconds(), e.getMessage());
    Files.writeString(
        options.out.resolve("soak.log"),
        message + "\n" + world.node.errors(),
        UTF_8,
        StandardOpenOption.CREATE,
        StandardOpenOption.APPEND);
    return message.lines().findFirst().orElse("");
  }

  private double seconds() {
    return (NanoClock.nanoTime() - beginNs) / 1e9;
  }

  private void go(SoakWorld world) throws InterruptedException, IOException {
    SoakMeter meter = new SoakMeter(world);
    while (!ending && world.fillOne()) {
      // Fills one place after the other.
    }
    beginNs = NanoClock.nanoTime(); // starting tenants takes as long as it takes
    double disturbed = seconds();
    double sampled = 0;
    double seated = seconds();
    double filled = seconds();
    double told = seconds();
    while (!ending && seconds() < options.seconds()) {
      if (seconds() - disturbed >= DISTURB_SECONDS) {
        disturbed = seconds();
        if (!world.fillOne()) {
          world.disturb();
        }
      }
      if (seconds() - seated >= options.seatSeconds() && seconds() < options.seconds() / 2) {
        seated = seconds();
        world.changeSeat();
      }
      if (seconds() - filled >= Math.min(DISK_SECONDS, options.seatSeconds() / 2)) {
        filled = seconds();
        world.fillDisk();
      }
      if (seconds() - sampled >= options.sampleSeconds()) {
        sampled = seconds();
        results.add(options.seed, sampled, meter.sample(), world.counts);
      }
      if (seconds() - told >= TELL_SECONDS) {
        told = seconds();
        System.err.printf(
            Locale.ROOT, "soak: %.0f of %.0f s, %s%n", told, options.seconds(), world.counts);
      }
      NanoClock.sleepMillis(BEAT_MS);
    }
  }
}
