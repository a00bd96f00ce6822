package dev.vgpu.cli.doctor;

import static java.util.Objects.requireNonNull;

/**
 * A finding about one aspect of the machine. Immutable.
 *
 * @param name the aspect, for example {@code locked-memory}
 * @param level how good it is
 * @param found the finding
 * @param remedy what to do about it; empty if nothing needs to be done
 */
public record Check(String name, Level level, String found, String remedy) {
  /** How good it is. */
  public enum Level {
    /** Nothing needs to be done. */
    GOOD,
    /** It works, but could be better. */
    POOR,
    /** Something does not work. */
    BAD
  }

  /** Checks that no component is missing. */
  public Check {
    requireNonNull(name, "name");
    requireNonNull(level, "level");
    requireNonNull(found, "found");
    requireNonNull(remedy, "remedy");
  }

  static Check good(String name, String found) {
    return new Check(name, Level.GOOD, found, "");
  }

  static Check poor(String name, String found, String remedy) {
    return new Check(name, Level.POOR, found, remedy);
  }

  static Check bad(String name, String found, String remedy) {
    return new Check(name, Level.BAD, found, remedy);
  }
}
