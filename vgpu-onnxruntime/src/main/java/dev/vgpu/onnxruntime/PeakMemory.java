package dev.vgpu.onnxruntime;

import dev.vgpu.CallOptions;
import dev.vgpu.MemorySize;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import org.jspecify.annotations.Nullable;

/**
 * The peak memory of a session's runs, by the shapes of their inputs. For unknown shapes, the least
 * peak of the known shapes that contain them applies. Safe for use by several threads.
 */
final class PeakMemory {
  /** No more shapes than this are kept: shapes within known ones need no entry. */
  static final int MOST_SHAPES = 512;

  /** The margin for what measuring may miss: a tenth. */
  private static final long MARGIN_PERCENT = 110;

  private final Map<Shapes, CallOptions> known = new ConcurrentHashMap<>();

  /** {@return options with the memory that a run of these shapes needs; null if not known} */
  @Nullable CallOptions find(Shapes shapes) {
    CallOptions exact = known.get(shapes);
    return exact == null ? findAmongLarger(shapes) : exact;
  }

  private @Nullable CallOptions findAmongLarger(Shapes shapes) {
    CallOptions least = null;
    for (Map.Entry<Shapes, CallOptions> entry : known.entrySet()) {
      if (shapes.isWithin(entry.getKey())
          && (least == null || entry.getValue().memory().compareTo(least.memory()) < 0)) {
        least = entry.getValue();
      }
    }
    if (least != null) {
      keep(shapes, least); // found directly the next time
    }
    return least;
  }

  /**
   * Records a measured peak. It is at least the known peak of any shapes within these.
   *
   * @param measuredBytes the measured peak; above 0
   * @param mostBytes what the quota leaves for a call
   */
  void learn(Shapes shapes, long measuredBytes, long mostBytes) {
    long bytes = measuredBytes * MARGIN_PERCENT / 100;
    for (Map.Entry<Shapes, CallOptions> entry : known.entrySet()) {
      if (entry.getKey().isWithin(shapes)) {
        bytes = Math.max(bytes, entry.getValue().memory().bytes());
      }
    }
    keep(shapes, CallOptions.ofMemory(MemorySize.ofBytes(Math.min(bytes, mostBytes))));
  }

  private void keep(Shapes shapes, CallOptions options) {
    if (known.size() < MOST_SHAPES) {
      known.put(shapes, options);
    }
  }
}
