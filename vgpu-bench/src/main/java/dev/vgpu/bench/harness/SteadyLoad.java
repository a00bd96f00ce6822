package dev.vgpu.bench.harness;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;

/**
 * A program that launches kernels of equal length without an end.
 *
 * @param kernelMs the length of a kernel
 * @param grid its number of blocks
 * @param sync how many launches there are between two waits for the GPU; 0 for no waits
 * @param graph how many kernels form a graph; 0 for plain launches
 * @param roundsPerMs how much work a kernel of 1 ms does; 0 for kernels that wait for the clock,
 *     which goes on while another program has its time slice
 */
public record SteadyLoad(double kernelMs, int grid, int sync, int graph, long roundsPerMs) {
  /** A load whose kernels wait for the clock. */
  public SteadyLoad(double kernelMs, int grid, int sync, int graph) {
    this(kernelMs, grid, sync, graph, 0);
  }

  /**
   * The measurements of a program.
   *
   * @param percent the part of the time in which its kernels ran
   * @param worstLaunchMs its longest launch
   */
  public record Held(double percent, double worstLaunchMs) {}

  /**
   * Programs, and the time of the GPU.
   *
   * @param held the measurements of each
   * @param timeline when their kernels ran
   */
  public record Timed(List<Held> held, Timeline timeline) {}

  private Child start(Node node, Map<String, String> place) {
    List<String> arguments =
        new ArrayList<>(
            List.of(
                "load",
                Long.toString((long) (kernelMs * 1e6)),
                Integer.toString(grid),
                Integer.toString(sync)));
    if (graph > 0) {
      arguments.add("graph=" + graph);
    }
    if (roundsPerMs > 0) {
      arguments.add("work=" + roundsPerMs);
    }
    return node.start(place, arguments.toArray(String[]::new));
  }

  /**
   * {@return the measurements of several programs that run at once}
   *
   * @param node where they run
   * @param places the environment of each
   * @param loads the load of each
   * @param warmUpMs how long they run before the measurement
   * @param windowMs the length of the measurement
   */
  public static List<Held> measure(
      Node node,
      List<Map<String, String>> places,
      List<SteadyLoad> loads,
      long warmUpMs,
      long windowMs)
      throws InterruptedException {
    List<Child> programs = new ArrayList<>();
    List<Held> held = measure(node, places, loads, warmUpMs, windowMs, programs);
    for (Child program : programs) {
      program.kill();
    }
    return held;
  }

  /** {@return what {@link #measure} returns, of kernels that do work, and when these ran} */
  public static Timed timed(
      Node node,
      List<Map<String, String>> places,
      List<SteadyLoad> loads,
      long warmUpMs,
      long windowMs)
      throws InterruptedException {
    List<Child> programs = new ArrayList<>();
    List<Held> held = measure(node, places, loads, warmUpMs, windowMs, programs);
    List<Path> files = new ArrayList<>();
    try {
      for (Child program : programs) {
        Path file = Files.createTempFile("vgpu", ".stamps");
        files.add(file);
        program.ask("stamps " + file);
      }
      for (Child program : programs) {
        program.kill();
      }
      return new Timed(held, Timeline.read(files));
    } catch (IOException e) {
      throw new UncheckedIOException("cannot make a file for stamps", e);
    } finally {
      for (Path file : files) {
        boolean ignored = file.toFile().delete();
      }
    }
  }

  private static List<Held> measure(
      Node node,
      List<Map<String, String>> places,
      List<SteadyLoad> loads,
      long warmUpMs,
      long windowMs,
      List<Child> programs)
      throws InterruptedException {
    for (int i = 0; i < places.size(); i++) {
      programs.add(loads.get(i).start(node, places.get(i)));
    }
    for (Child program : programs) {
      program.awaitReady();
    }
    for (Child program : programs) {
      program.ask("start");
    }
    NanoClock.sleepMillis(warmUpMs);
    List<Answer> before = readings(programs);
    NanoClock.sleepMillis(windowMs);
    List<Answer> after = readings(programs);
    List<Held> held = new ArrayList<>();
    for (int i = 0; i < programs.size(); i++) {
      double kernels = after.get(i).number("kernels") - before.get(i).number("kernels");
      double wallMs = (after.get(i).number("now_ns") - before.get(i).number("now_ns")) / 1e6;
      double worstNs =
          Math.max(after.get(i).number("worst_launch_ns"), after.get(i).number("open_ns"));
      held.add(new Held(100 * kernels * loads.get(i).kernelMs / wallMs, worstNs / 1e6));
    }
    return held;
  }

  private static List<Answer> readings(List<Child> programs) throws InterruptedException {
    List<Answer> answers = new ArrayList<>();
    for (Child program : programs) {
      Answer answer = program.ask("read");
      if (answer.whole("error") != 0) {
        throw new IllegalStateException("a program failed: " + answer.line());
      }
      answers.add(answer);
    }
    return answers;
  }
}
