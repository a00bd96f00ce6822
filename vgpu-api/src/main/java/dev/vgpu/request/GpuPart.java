package dev.vgpu.request;

import static java.util.Objects.requireNonNull;

import java.util.regex.Pattern;

/**
 * A part that a GPU's hardware can be divided into: a MIG GPU instance. Immutable.
 *
 * @param profile its profile as {@code nvidia-smi} writes it, for example {@code 3g.40gb}
 * @param start its first memory slice
 * @param slices how many memory slices it takes, from the first one on
 * @param computeSlices how many compute slices it takes; they have no position
 * @param memory its memory
 * @param multiprocessors its multiprocessors (SMs)
 */
public record GpuPart(
    String profile,
    int start,
    int slices,
    int computeSlices,
    MemorySize memory,
    int multiprocessors) {
  private static final Pattern ASKED =
      Pattern.compile("[A-Za-z0-9][A-Za-z0-9.+_-]{0,62}(:[0-9]{1,2})?");

  /** {@return its name, {@code PROFILE:START}, for {@link VirtualGpuRequest.Builder#part}} */
  public String name() {
    return profile + ":" + start;
  }

  /** Returns what a request asks for, {@code PROFILE} or {@code PROFILE:START}. */
  static String checked(String part) {
    if (!ASKED.matcher(requireNonNull(part, "part")).matches()) {
      throw new IllegalArgumentException(
          "not a part of a GPU: '" + part + "' (PROFILE or PROFILE:START, for example 3g.40gb:4)");
    }
    return part;
  }
}
