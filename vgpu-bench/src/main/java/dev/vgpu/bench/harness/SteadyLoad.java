package dev.vgpu.bench.harness;

import java.util.ArrayList;
import java.util.List;
import java.util.Map;

/**
 * A program that launches kernels of one length without an end.
 *
 * @param kernelMs what a kernel takes
 * @param grid its blocks
 * @param sync it waits for the GPU after each so many launches; 0: never
 * @param graph so many kernels are one graph; 0: plain launches
 */
public record SteadyLoad(double kernelMs, int grid, int sync, int graph) {

  /**
   * What a program had.
   *
   * @param percent how much of the time its kernels ran
   * @param worstLaunchMs the longest that a launch took
   */
  public record Held(double percent, double worstLaunchMs) {}

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
    return node.start(place, arguments.toArray(String[]::new));
  }

  /**
   * {@return what each of some programs has, all at once}
   *
   * @param node where they run
   * @param places the environment of each
   * @param loads the load of each
   * @param warmUpMs how long they run before
   * @param windowMs how long they are looked at
   */
  public static List<Held> measure(
      Node node,
      List<Map<String, String>> places,
      List<SteadyLoad> loads,
      long warmUpMs,
      long windowMs)
      throws InterruptedException {
    List<Child> programs = new ArrayList<>();
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
      programs.get(i).kill();
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
