package dev.vgpu.bench.colocation;

import java.util.Arrays;
import java.util.List;
import java.util.Locale;

/**
 * The options of the co-location benchmark. Immutable.
 *
 * @param trace the online requests
 * @param kernels the offline kernels
 * @param loads how busy the online requests alone keep the GPU, in percent
 * @param quick a tenth of the time
 */
public record ColocationOptions(
    AzureTrace trace, Kernels kernels, List<Integer> loads, boolean quick) {
  private static final List<Integer> LOADS = List.of(20, 40, 60);

  /** Copies the list. */
  public ColocationOptions {
    loads = List.copyOf(loads);
  }

  /**
   * Takes the benchmark's options out of a command line.
   *
   * @param arguments a mutable list; options and their values are removed
   * @param quick a tenth of the time
   * @return the options
   * @throws IllegalArgumentException if a value is not valid
   */
  public static ColocationOptions take(List<String> arguments, boolean quick) {
    String trace = value(arguments, "--trace", "conv");
    String kernels = value(arguments, "--kernels", "short");
    String load = value(arguments, "--load", "");
    return new ColocationOptions(
        oneOf("--trace", trace, AzureTrace.values()),
        oneOf("--kernels", kernels, Kernels.values()),
        load.isEmpty() ? LOADS : List.of(percent(load)),
        quick);
  }

  /**
   * Takes one option out of a command line.
   *
   * @param arguments a mutable list; the option and its value are removed
   * @param name with its dashes
   * @param otherwise the default
   * @return its value
   * @throws IllegalArgumentException if it has no value
   */
  public static String value(List<String> arguments, String name, String otherwise) {
    for (int i = 0; i < arguments.size(); i++) {
      if (arguments.get(i).startsWith(name + "=")) {
        return arguments.remove(i).substring(name.length() + 1);
      }
      if (arguments.get(i).equals(name)) {
        if (i + 1 == arguments.size()) {
          throw new IllegalArgumentException(name + " needs a value");
        }
        arguments.remove(i);
        return arguments.remove(i);
      }
    }
    return otherwise;
  }

  private static <E extends Enum<E>> E oneOf(String name, String word, E[] values) {
    for (E value : values) {
      if (value.name().toLowerCase(Locale.ROOT).equals(word)) {
        return value;
      }
    }
    throw new IllegalArgumentException(
        name
            + " is one of "
            + Arrays.toString(values).toLowerCase(Locale.ROOT)
            + ", not '"
            + word
            + "'");
  }

  private static int percent(String word) {
    if (word.matches("[1-9][0-9]?")) {
      return Integer.parseInt(word);
    }
    throw new IllegalArgumentException("--load is a whole number from 1 to 99, not '" + word + "'");
  }
}
