package dev.vgpu.memory;

import dev.vgpu.CallOptions;
import dev.vgpu.request.MemorySize;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import org.jspecify.annotations.Nullable;

/**
 * The peak memory of a model's runs, by the shapes of their inputs. For unknown shapes, the least
 * peak of the known shapes that contain them applies. Safe for use by several threads.
 */
public final class PeakMemory {
  /** No more shapes than this are learnt: shapes within known ones need no measurement. */
  static final int MOST_SHAPES = 512;

  /** The margin for what measuring may miss: a tenth. */
  private static final long MARGIN_PERCENT = 110;

  private final Map<Shapes, Known> known = new ConcurrentHashMap<>();

  /** What was found among larger shapes, for shapes that were not measured. Bounded by emptying. */
  private final Map<Shapes, Known> copies = new ConcurrentHashMap<>();

  /** What is known of some shapes. Safe for use by several threads. */
  private static final class Known {
    final MemorySize memory;

    /** What the latest caller had; most callers of a model have the same options each time. */
    private volatile Combined latest;

    Known(MemorySize memory) {
      this.memory = memory;
      this.latest = combined(CallOptions.defaults());
    }

    private Combined combined(CallOptions options) {
      return new Combined(options, options.toBuilder().memory(memory).build());
    }

    CallOptions with(CallOptions options) {
      Combined last = latest;
      if (last.options != options) {
        last = combined(options);
        latest = last;
      }
      return last.withMemory;
    }
  }

  private record Combined(CallOptions options, CallOptions withMemory) {}

  /** Creates one that knows no shapes. */
  public PeakMemory() {}

  /** {@return the memory that a run of these shapes needs; null if not known} */
  public @Nullable MemorySize find(Shapes shapes) {
    Known found = known(shapes);
    return found == null ? null : found.memory;
  }

  /**
   * {@return options with the memory that a run of these shapes needs; null if not known}
   *
   * @param shapes of the run's inputs
   * @param options all else
   */
  public @Nullable CallOptions find(Shapes shapes, CallOptions options) {
    Known found = known(shapes);
    return found == null ? null : found.with(options);
  }

  private @Nullable Known known(Shapes shapes) {
    Known exact = known.get(shapes);
    if (exact == null) {
      exact = copies.get(shapes);
    }
    return exact == null ? findAmongLarger(shapes) : exact;
  }

  private @Nullable Known findAmongLarger(Shapes shapes) {
    Known least = null;
    for (Map.Entry<Shapes, Known> entry : known.entrySet()) {
      if (shapes.isWithin(entry.getKey())
          && (least == null || entry.getValue().memory.compareTo(least.memory) < 0)) {
        least = entry.getValue();
      }
    }
    if (least != null) {
      if (copies.size() >= MOST_SHAPES) {
        copies.clear();
      }
      copies.put(shapes.kept(), least); // found directly the next time
    }
    return least;
  }

  /**
   * Records a measured peak. It is at least the known peak of any shapes within these.
   *
   * @param shapes of the run's inputs
   * @param measuredBytes the measured peak; above 0
   * @param mostBytes what the quota leaves for a call
   */
  public void learn(Shapes shapes, long measuredBytes, long mostBytes) {
    long bytes = measuredBytes * MARGIN_PERCENT / 100;
    for (Map.Entry<Shapes, Known> entry : known.entrySet()) {
      if (entry.getKey().isWithin(shapes)) {
        bytes = Math.max(bytes, entry.getValue().memory.bytes());
      }
    }
    if (known.size() < MOST_SHAPES) {
      known.put(shapes.kept(), new Known(MemorySize.ofBytes(Math.min(bytes, mostBytes))));
    }
  }
}
