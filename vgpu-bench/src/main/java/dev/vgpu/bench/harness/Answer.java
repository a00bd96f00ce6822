package dev.vgpu.bench.harness;

import java.util.HashMap;
import java.util.Map;

/**
 * One line of the C program: a word, then names and numbers in alternation. Immutable.
 *
 * @param line the whole line
 * @param values the numbers by name
 */
public record Answer(String line, Map<String, Double> values) {
  /**
   * Parses a line.
   *
   * @param line the output line
   * @return its names and numbers; values that are not numbers are left out
   */
  static Answer fromLine(String line) {
    String[] words = line.split(" ", -1);
    Map<String, Double> values = new HashMap<>();
    for (int i = words.length % 2; i + 1 < words.length; i += 2) {
      if (words[i + 1].matches("-?[0-9]+([.][0-9]+)?")) {
        values.put(words[i], Double.valueOf(words[i + 1]));
      }
    }
    return new Answer(line, Map.copyOf(values));
  }

  /**
   * {@return one of the numbers}
   *
   * @param name its name
   * @throws IllegalStateException if the line does not have it
   */
  public double number(String name) {
    Double value = values.get(name);
    if (value == null) {
      throw new IllegalStateException("no " + name + " in: " + line);
    }
    return value;
  }

  /**
   * {@return one of the numbers, as an integer}
   *
   * @param name its name
   * @throws IllegalStateException if the line does not have it
   */
  public long whole(String name) {
    return (long) number(name);
  }
}
