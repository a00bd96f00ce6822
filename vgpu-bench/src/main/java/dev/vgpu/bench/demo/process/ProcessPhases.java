package dev.vgpu.bench.demo.process;

import dev.vgpu.bench.demo.figure.DemoOptions;
import java.util.List;

/**
 * The lengths of the demo's phases with processes, in seconds. Immutable.
 *
 * @param alone the online program alone on the device
 * @param three the three other programs together
 * @param together all four programs
 */
record ProcessPhases(double alone, double three, double together) {
  private static final double OVERHEAD = 3;

  static ProcessPhases of(DemoOptions.Length length) {
    return switch (length) {
      case FULL -> new ProcessPhases(4, 8, 8);
      case QUICK -> new ProcessPhases(2, 4, 4);
      case BRIEF -> new ProcessPhases(0.5, 1, 1);
    };
  }

  static ProcessPhases ofArguments(String... arguments) {
    return new ProcessPhases(
        Double.parseDouble(arguments[0]),
        Double.parseDouble(arguments[1]),
        Double.parseDouble(arguments[2]));
  }

  List<String> arguments() {
    return List.of(Double.toString(alone), Double.toString(three), Double.toString(together));
  }

  /** {@return about how long all phases take} */
  double totalSeconds() {
    return alone + three + together + OVERHEAD;
  }
}
