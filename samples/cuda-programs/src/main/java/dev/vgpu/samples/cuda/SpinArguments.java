package dev.vgpu.samples.cuda;

import java.util.LinkedHashMap;
import java.util.Map;

/**
 * The command line: {@code --name value} or {@code --name=value}, and {@code --json}. Immutable.
 */
final class SpinArguments {
  private static final long LARGEST = 1_000_000_000L;

  private final Map<String, String> given = new LinkedHashMap<>();

  /**
   * Reads a command line.
   *
   * @param known the options, each with its default; one with an empty default is a flag
   * @param args what was given
   * @throws IllegalArgumentException if an option is unknown or has no value
   */
  SpinArguments(Map<String, String> known, String... args) {
    given.putAll(known);
    for (int i = 0; i < args.length; i++) {
      String[] parts = args[i].split("=", 2);
      String name = parts[0].startsWith("--") ? parts[0].substring(2) : "";
      String fallback = known.get(name);
      if (fallback == null) {
        throw new IllegalArgumentException("not known: '" + args[i] + "'");
      }
      if (fallback.isEmpty()) {
        given.put(name, "yes");
      } else if (parts.length == 2) {
        given.put(name, parts[1]);
      } else if (i + 1 < args.length) {
        i++;
        given.put(name, args[i]);
      } else {
        throw new IllegalArgumentException(args[i] + " needs a value");
      }
    }
  }

  boolean isSet(String name) {
    return !text(name).isEmpty();
  }

  String text(String name) {
    return given.getOrDefault(name, "");
  }

  /** {@return an integer from 0 to 1,000,000,000} */
  long number(String name) {
    try {
      long number = Long.parseLong(text(name));
      if (number >= 0 && number <= LARGEST) {
        return number;
      }
    } catch (NumberFormatException e) {
      // Reported below.
    }
    throw new IllegalArgumentException(
        "--" + name + ": not a whole number within 0 to " + LARGEST + ": '" + text(name) + "'");
  }
}
