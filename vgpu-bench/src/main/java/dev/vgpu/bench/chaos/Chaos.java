package dev.vgpu.bench.chaos;

import static java.nio.charset.StandardCharsets.UTF_8;

import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.ObjectWriter;
import dev.vgpu.bench.harness.NanoClock;
import java.io.IOException;
import java.io.PrintStream;
import java.io.UncheckedIOException;
import java.lang.management.ManagementFactory;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardCopyOption;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Random;
import java.util.stream.Stream;
import org.jspecify.annotations.Nullable;

/** A run of the chaos suite. Confined to one thread. */
public final class Chaos {
  private static final int BOOKS_EVERY = 4;
  private static final int SHARES_EVERY = 20;
  private static final long TELL_EVERY_NS = 10_000_000_000L;
  private static final long STEP_FACTOR = 1_000_003;

  /** The pages of a lease are smaller, what fills the disk is larger. */
  private static final long PAGE_FILE_BYTES = 4 << 20;

  private final ChaosOptions options;
  private final long seed;
  private final StringBuilder log = new StringBuilder();
  private final long beginNs = NanoClock.nanoTime();
  private long toldNs;
  private int step;

  private Chaos(ChaosOptions options, long seed) {
    this.options = options;
    this.seed = seed;
  }

  /**
   * Runs the suite.
   *
   * @param options the options of {@code vgpu chaos}
   * @return the exit code: 0 all invariants held, 1 one did not or a run made too few steps
   * @throws InterruptedException if this thread is interrupted
   * @throws IOException if the logs cannot be kept
   */
  public static int run(ChaosOptions options) throws InterruptedException, IOException {
    int exitCode = 0;
    for (long seed : options.seeds()) {
      exitCode = Math.max(exitCode, new Chaos(options, seed).run());
    }
    return exitCode;
  }

  private int run() throws InterruptedException, IOException {
    PrintStream err = System.err;
    err.println("chaos: seed " + seed);
    try (World world = new World()) {
      if (!world.disk.isPossible()) {
        err.println("chaos: no full disks: this needs a mount namespace (root, or unshare -Urm)");
      }
      Steps steps = new Steps(world);
      Checks checks = new Checks(world);
      @Nullable String failure = null;
      try {
        takeSteps(world, steps, checks);
      } catch (ChaosFailure | IllegalStateException e) {
        failure = "step " + step + " (" + steps.last() + "): " + e.getMessage();
      }
      Map<String, Object> result = new LinkedHashMap<>();
      if (failure != null) {
        result.put("failure", failure);
      }
      result.putAll(result(world, steps, checks));
      if (failure != null) {
        result.put("logs", keepLogs(world, failure).toString());
        result.put("replay", "./vgpu chaos --seed " + seed + " --steps " + step);
      }
      boolean tooShort = failure == null && options.isTooShort(step);
      if (tooShort) {
        result.put("too_few_steps", step);
      }
      print(result);
      return failure == null && !tooShort ? 0 : 1;
    }
  }

  private void takeSteps(World world, Steps steps, Checks checks) throws InterruptedException {
    checks.books();
    while (step < options.steps && seconds() < options.seconds()) {
      step++;
      double extraMs = steps.take(new Random(seed * STEP_FACTOR + step));
      log.append(String.format(Locale.ROOT, "%8.3f step %d %s%n", seconds(), step, steps.last()));
      checks.always(extraMs);
      if (step % BOOKS_EVERY == 0) {
        checks.books();
      }
      if (step % SHARES_EVERY == 0) {
        checks.shares();
      }
      tell(steps);
    }
    for (Program program : List.copyOf(world.programs)) {
      world.kill(program);
    }
    checks.books();
  }

  private double seconds() {
    return (NanoClock.nanoTime() - beginNs) / 1e9;
  }

  private void tell(Steps steps) {
    long nowNs = NanoClock.nanoTime();
    if (nowNs - toldNs > TELL_EVERY_NS) {
      toldNs = nowNs;
      System.err.printf(
          Locale.ROOT,
          "chaos: %.0f of %.0f s, step %d, %s%n",
          seconds(),
          options.seconds(),
          step,
          steps.last());
    }
  }

  private Map<String, Object> result(World world, Steps steps, Checks checks) {
    Map<String, Object> result = new LinkedHashMap<>();
    result.put("seed", seed);
    result.put("steps", step);
    result.put("seconds", rounded(seconds()));
    result.put("load_average", rounded(load()));
    result.put("full_disk", world.disk.isPossible());
    result.put("counts", steps.counts());
    result.put("programs_did", checks.did());
    result.put("stalls_of_late_seats", checks.excusedStalls());
    Map<String, Double> worst = new LinkedHashMap<>();
    world.waits.worstMs().forEach((what, ms) -> worst.put(what, rounded(ms)));
    worst.put("books_settled", rounded(checks.worstSettleMs()));
    worst.put("take_over", rounded(world.seats.worstTakeOverMs()));
    result.put("worst_ms", worst);
    return result;
  }

  /** The load average of the last minute. */
  private static double load() {
    return ManagementFactory.getOperatingSystemMXBean().getSystemLoadAverage();
  }

  private static double rounded(double value) {
    return Math.round(value * 10) / 10.0;
  }

  /** {@return a directory with the steps, and the output, pages and threads of all processes} */
  private Path keepLogs(World world, String failure) throws IOException, InterruptedException {
    Path kept = Files.createTempDirectory(Path.of("/tmp"), "vgpu-chaos-" + seed + "-");
    Files.writeString(kept.resolve("steps.log"), log + "FAILED " + failure + "\n", UTF_8);
    keepPages(world.node.runDirectory(), kept.resolve("run"));
    Threads.tell(world, kept.resolve("threads.log"));
    Path said = world.node.file("stderr");
    if (Files.exists(said)) {
      Files.copy(said, kept.resolve("stderr.log"), StandardCopyOption.REPLACE_EXISTING);
    }
    return kept;
  }

  /** Copies the shared pages as they are now: the grant words, slots and lanes of all leases. */
  private static void keepPages(Path run, Path kept) {
    try (Stream<Path> files = Files.walk(run)) {
      for (Path file : files.filter(Files::isRegularFile).toList()) {
        if (Files.size(file) <= PAGE_FILE_BYTES) {
          Path copy = kept.resolve(run.relativize(file).toString());
          Files.createDirectories(copy.getParent());
          Files.copy(file, copy);
        }
      }
    } catch (IOException | UncheckedIOException e) {
      System.err.println("chaos: not all pages were kept: " + e); // a seat deleted one meanwhile
    }
  }

  private void print(Map<String, Object> result) throws IOException {
    boolean isOnly = options.runs == 1;
    if (options.json.isGiven()) {
      ObjectMapper json = new ObjectMapper();
      ObjectWriter writer = isOnly ? json.writerWithDefaultPrettyPrinter() : json.writer();
      System.out.println(writer.writeValueAsString(result));
      return;
    }
    String held = "too few steps: " + step + " of at least " + options.leastSteps;
    held = result.containsKey("too_few_steps") ? held : "all held";
    String outcome = result.containsKey("failure") ? "FAILED" : held;
    if (!isOnly && !result.containsKey("failure")) {
      System.out.printf(
          Locale.ROOT,
          "seed %7d: %3d steps in %3.0f s, load %4.1f: %s%n",
          seed,
          step,
          seconds(),
          load(),
          outcome);
      return;
    }
    result.forEach((name, value) -> System.out.println(name + ": " + value));
    System.out.println(outcome);
  }
}
