package dev.vgpu.bench.death;

import dev.vgpu.bench.harness.Answer;
import dev.vgpu.bench.harness.Child;
import dev.vgpu.bench.harness.NanoClock;
import dev.vgpu.bench.harness.Node;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Objects;

/**
 * Traces the causes of the longest stalls: the changes of the leases' pages meanwhile, and which
 * process was killed or stopped. Confined to one thread.
 */
final class StallTrace implements AutoCloseable {
  private static final int WORST = 10;
  private static final long BEFORE_NS = 5_000_000;
  private static final long AFTER_NS = 1_000_000;
  private static final String END = "end";

  private final Path file;
  private final Child watcher;
  private final List<Strike> strikes = new ArrayList<>();

  private record Strike(long atNs, String what) {}

  private record Stall(int program, long beginNs, long endNs, double lateMs) {
    double ms() {
      return (endNs - beginNs) / 1e6;
    }
  }

  /**
   * Begins to watch.
   *
   * @param node the node of the leases
   * @param places the environments that put programs under them
   * @param file receives the findings, appended
   */
  StallTrace(Node node, List<Map<String, String>> places, Path file) throws InterruptedException {
    this.file = file;
    List<String> arguments = new ArrayList<>(List.of("stalls"));
    for (Map<String, String> place : places) {
      String lease = Objects.requireNonNull(place.get("VGPU_LEASE"));
      arguments.add(node.runDirectory().resolve("leases").resolve(lease).toString());
    }
    this.watcher = node.start(Map.of(), arguments.toArray(String[]::new)).awaitReady();
  }

  void strike(Child child, String what) {
    strikes.add(new Strike(NanoClock.nanoTime(), what + " " + child.pid()));
  }

  /** Discards everything up to now. */
  void forget(List<Child> programs) throws InterruptedException {
    List<Stall> ignored = stalls(programs);
    strikes.clear();
  }

  private static List<Stall> stalls(List<Child> programs) throws InterruptedException {
    List<Stall> stalls = new ArrayList<>();
    for (int i = 0; i < programs.size(); i++) {
      programs.get(i).tell("stalls");
      Answer answer = programs.get(i).answer();
      while (!answer.line().equals(END)) {
        stalls.add(
            new Stall(
                i,
                (long) answer.number("begin_ns"),
                (long) answer.number("end_ns"),
                answer.number("late_ns") / 1e6));
        answer = programs.get(i).answer();
      }
    }
    stalls.sort(Comparator.comparingDouble(Stall::ms).reversed());
    return stalls;
  }

  /** Writes the longest stalls of all programs since the last call. */
  void tell(String phase, List<Child> programs) throws InterruptedException {
    List<Stall> stalls = stalls(programs);
    StringBuilder text = new StringBuilder();
    for (Stall stall : stalls.subList(0, Math.min(WORST, stalls.size()))) {
      text.append(
          String.format(
              Locale.ROOT,
              "%s: %.3f ms of program %d of lease %d, without a processor for %.3f ms%n",
              phase,
              stall.ms(),
              programs.get(stall.program).pid(),
              stall.program,
              stall.lateMs));
      around(stall, text);
    }
    strikes.clear();
    try {
      Files.writeString(file, text, StandardOpenOption.CREATE, StandardOpenOption.APPEND);
    } catch (IOException e) {
      throw new UncheckedIOException("cannot write " + file, e);
    }
  }

  private void around(Stall stall, StringBuilder text) throws InterruptedException {
    long fromNs = stall.beginNs - BEFORE_NS;
    long toNs = stall.endNs + AFTER_NS;
    for (Strike strike : strikes) {
      if (strike.atNs >= fromNs - 60_000_000 && strike.atNs <= toNs) {
        text.append(
            String.format(
                Locale.ROOT, "  %+10.3f ms  %s%n", (strike.atNs - fromNs) / 1e6, strike.what));
      }
    }
    watcher.tell("tell " + fromNs + " " + toNs);
    for (String line = watcher.line(); !line.equals(END); line = watcher.line()) {
      text.append(line).append('\n');
    }
  }

  @Override
  public void close() {
    watcher.close();
  }
}
