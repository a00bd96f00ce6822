package dev.vgpu.core.metering;

import static java.nio.charset.StandardCharsets.ISO_8859_1;

import java.io.ByteArrayInputStream;
import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import net.jqwik.api.Arbitraries;
import net.jqwik.api.Arbitrary;
import net.jqwik.api.Combinators;

/** Records as a seat would write them. */
final class Entries {
  /** One sample of one of a few virtual GPUs: its use since the last sample. */
  record Step(int lease, int ms, int gpuUs, int kibiSeconds, int launches, int denied) {}

  private Entries() {}

  static Arbitrary<List<Step>> steps(int most) {
    Arbitrary<Integer> small = Arbitraries.integers().between(0, 3);
    Arbitrary<Integer> any = Arbitraries.integers().between(0, 1_000_000);
    return Combinators.combine(
            small, Arbitraries.integers().between(1, 40_000), any, any, any, small)
        .as(Step::new)
        .list()
        .ofMinSize(1)
        .ofMaxSize(most);
  }

  static List<UsageEntry> of(List<Step> steps) {
    Map<Integer, Counters> totals = new HashMap<>();
    List<UsageEntry> entries = new ArrayList<>();
    long atMs = 1_000_000;
    for (Step step : steps) {
      atMs += step.ms();
      Counters grown =
          new Counters(
              step.gpuUs() * 1_000L,
              step.kibiSeconds() * 1_024L,
              step.launches() / 2,
              step.launches(),
              step.denied() * 2L,
              step.denied(),
              step.gpuUs() * 3L);
      Counters total = totals.getOrDefault(step.lease(), Counters.ZERO).plus(grown);
      totals.put(step.lease(), total);
      String id = "model é #\n-" + step.lease();
      entries.add(
          new UsageEntry(
              id, "model é", "GPU 1/ü", 1_000_000, atMs, atMs * 7, false, grown, total, total));
    }
    return entries;
  }

  static byte[] bytes(List<UsageEntry> entries) {
    ByteArrayOutputStream out = new ByteArrayOutputStream();
    entries.forEach(entry -> out.writeBytes(line(entry)));
    return out.toByteArray();
  }

  static byte[] line(UsageEntry entry) {
    return EntryLines.line(entry).getBytes(ISO_8859_1);
  }

  /** The start of each line, and the end of the last one. */
  static List<Integer> borders(List<UsageEntry> entries) {
    List<Integer> borders = new ArrayList<>(List.of(0));
    for (UsageEntry entry : entries) {
      borders.add(borders.get(borders.size() - 1) + line(entry).length);
    }
    return borders;
  }

  static List<UsageEntry> read(byte[] bytes) {
    List<UsageEntry> entries = new ArrayList<>();
    long ignored = read(bytes, entries);
    return entries;
  }

  /** Returns how many bytes belong to whole lines. */
  static long read(byte[] bytes, List<UsageEntry> to) {
    try {
      return EntryLines.read(
          new ByteArrayInputStream(bytes), bytes.length, to::add, (line, text) -> {});
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
  }
}
