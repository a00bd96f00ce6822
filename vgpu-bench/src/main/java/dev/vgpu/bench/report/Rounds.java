package dev.vgpu.bench.report;

import dev.vgpu.bench.harness.Answer;
import dev.vgpu.bench.harness.Child;
import java.util.ArrayList;
import java.util.List;

/**
 * Programs that measure one after the other, round by round, so that the machine's noise affects
 * all of them alike. The first one is the reference: what another program adds is the median of the
 * differences within a round.
 */
public final class Rounds {
  private final List<List<Double>> values = new ArrayList<>();
  private final List<Double> slow = new ArrayList<>();
  private int count;

  /** Creates rounds for a number of programs. */
  public Rounds(int programs) {
    for (int i = 0; i < programs; i++) {
      values.add(new ArrayList<>());
      slow.add(0.0);
    }
  }

  /** Runs a number of rounds, after one to warm up. */
  public void measure(List<Child> programs, String order, int rounds) throws InterruptedException {
    for (Child program : programs) {
      program.ask(order); // warms up
    }
    for (int round = 0; round < rounds; round++) {
      for (int i = 0; i < programs.size(); i++) {
        int index = (i + round) % programs.size();
        Answer answer = programs.get(index).ask(order);
        values.get(index).add(answer.number("median_ns"));
        slow.set(index, slow.get(index) + answer.number("slow_percent"));
      }
      count++;
    }
  }

  /** {@return the median of a program} */
  public double median(int program) {
    return Report.median(array(values.get(program)));
  }

  /** {@return what a program adds to the first one} */
  public double added(int program) {
    List<Double> differences = new ArrayList<>();
    for (int round = 0; round < count; round++) {
      differences.add(values.get(program).get(round) - values.get(0).get(round));
    }
    return Report.median(array(differences));
  }

  /** The percentage of blocks that took more than three times the median. */
  public double slowPercent(int program) {
    return slow.get(program) / count;
  }

  private static double[] array(List<Double> list) {
    return list.stream().mapToDouble(Double::doubleValue).toArray();
  }
}
