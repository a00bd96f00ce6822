package dev.vgpu;

import static java.util.Objects.requireNonNull;

/**
 * The name of one GPU, stable over restarts: the UUID that the driver gives, or {@code host} for
 * this machine's CPU. Immutable.
 *
 * @param value the name; not blank
 */
public record GpuId(String value) {
  /**
   * Checks the name.
   *
   * @throws IllegalArgumentException if the name is blank
   */
  public GpuId {
    requireNonNull(value, "value");
    if (value.isBlank()) {
      throw new IllegalArgumentException("a GPU's name is blank");
    }
  }

  /** {@return the bare name} */
  @Override
  public String toString() {
    return value;
  }
}
