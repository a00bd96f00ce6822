package dev.vgpu.core.metering;

import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;

/**
 * Thins old records: of each minute, only the last record of each virtual GPU is kept. The totals
 * stay the same; only the resolution in time decreases.
 */
final class Thinning {
  private static final long MINUTE_MS = 60_000;

  private Thinning() {}

  static List<UsageEntry> of(List<UsageEntry> entries) {
    Map<UsageEntry.Key, Integer> lasts = new HashMap<>();
    List<UsageEntry> kept = new ArrayList<>();
    for (UsageEntry entry : entries) {
      Integer before = lasts.get(entry.key());
      if (before != null && isSameMinute(Objects.requireNonNull(kept.get(before)), entry)) {
        kept.set(before, entry.following(kept.get(before)));
      } else {
        lasts.put(entry.key(), kept.size());
        kept.add(entry);
      }
    }
    return kept;
  }

  private static boolean isSameMinute(UsageEntry one, UsageEntry other) {
    return Math.floorDiv(one.atMs(), MINUTE_MS) == Math.floorDiv(other.atMs(), MINUTE_MS);
  }
}
