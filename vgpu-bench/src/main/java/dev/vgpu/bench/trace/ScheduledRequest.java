package dev.vgpu.bench.trace;

import static java.util.Objects.requireNonNull;

import java.util.List;

/**
 * A request that is to be sent. Immutable.
 *
 * @param arrivalNs when to send it, in nanoseconds since the schedule's start
 * @param path where to send it, for example {@code /embed}
 * @param texts the texts to embed; at least one
 */
public record ScheduledRequest(long arrivalNs, String path, List<String> texts) {
  /** Copies the list. */
  public ScheduledRequest {
    requireNonNull(path, "path");
    texts = List.copyOf(texts);
  }
}
