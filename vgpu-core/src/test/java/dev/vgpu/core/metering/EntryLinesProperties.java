package dev.vgpu.core.metering;

import static org.assertj.core.api.Assertions.assertThat;

import java.nio.charset.StandardCharsets;
import java.time.Instant;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import net.jqwik.api.Arbitrary;
import net.jqwik.api.EdgeCasesMode;
import net.jqwik.api.Example;
import net.jqwik.api.ForAll;
import net.jqwik.api.Property;
import net.jqwik.api.Provide;
import net.jqwik.api.Tag;
import net.jqwik.api.constraints.DoubleRange;

/** Damage loses only what was damaged, and nothing is invented. */
@Tag("property")
class EntryLinesProperties {
  @Provide
  Arbitrary<List<Entries.Step>> steps() {
    return Entries.steps(12);
  }

  @Property(tries = 200, edgeCases = EdgeCasesMode.NONE)
  void whatWasWrittenIsRead(@ForAll("steps") List<Entries.Step> steps) {
    List<UsageEntry> entries = Entries.of(steps);
    assertThat(Entries.read(Entries.bytes(entries))).isEqualTo(entries);
  }

  /** In the format without copy time. */
  @Example
  void recordOfTheFirstVersionIsRead() {
    String line =
        "#2a567b32 1 model-1 model GPU-1 1000 2000 0 "
            + "5 6 7 8 9 10 50 60 70 80 90 100 51 61 71 81 91 101\n";
    assertThat(Entries.read(line.getBytes(StandardCharsets.ISO_8859_1)))
        .containsExactly(
            new UsageEntry(
                "model-1",
                "model",
                "GPU-1",
                1000,
                2000,
                0,
                false,
                new Counters(5, 6, 7, 8, 9, 10, 0),
                new Counters(50, 60, 70, 80, 90, 100, 0),
                new Counters(51, 61, 71, 81, 91, 101, 0)));
  }

  /** In the format without the time by the clock that cannot be set. */
  @Example
  void recordOfTheSecondVersionIsRead() {
    String line =
        "#249d4db9 2 model-1 model GPU-1 1000 2000 0 "
            + "5 6 7 8 9 10 11 50 60 70 80 90 100 110 51 61 71 81 91 101 111\n";
    assertThat(Entries.read(line.getBytes(StandardCharsets.ISO_8859_1)))
        .containsExactly(
            new UsageEntry(
                "model-1",
                "model",
                "GPU-1",
                1000,
                2000,
                0,
                false,
                new Counters(5, 6, 7, 8, 9, 10, 11),
                new Counters(50, 60, 70, 80, 90, 100, 110),
                new Counters(51, 61, 71, 81, 91, 101, 111)));
  }

  @Property(tries = 300, edgeCases = EdgeCasesMode.NONE)
  void whereverItIsCutOffAllWholeRecordsAreRead(
      @ForAll("steps") List<Entries.Step> steps, @ForAll @DoubleRange(max = 1) double where) {
    List<UsageEntry> entries = Entries.of(steps);
    byte[] bytes = Entries.bytes(entries);
    List<Integer> borders = Entries.borders(entries);
    int cut = at(where, bytes.length + 1);
    int whole = (int) borders.stream().filter(border -> border > 0 && border <= cut).count();
    byte[] torn = Arrays.copyOf(bytes, cut);
    assertThat(Entries.read(torn)).isEqualTo(entries.subList(0, whole));
    List<UsageEntry> ignored = new ArrayList<>();
    assertThat(Entries.read(torn, ignored)).isEqualTo((long) borders.get(whole));
  }

  @Property(tries = 300, edgeCases = EdgeCasesMode.NONE)
  void whatIsWrittenBehindATornRecordIsRead(
      @ForAll("steps") List<Entries.Step> steps, @ForAll @DoubleRange(max = 1) double where) {
    List<UsageEntry> entries = Entries.of(steps);
    List<Integer> borders = Entries.borders(entries);
    int torn = at(where, entries.size());
    byte[] bytes = Entries.bytes(entries);
    int keep = borders.get(torn) + at(where * 7 % 1, Entries.line(entries.get(torn)).length);
    byte[] joined = Arrays.copyOf(bytes, keep + bytes.length - borders.get(torn + 1));
    System.arraycopy(
        bytes, borders.get(torn + 1), joined, keep, bytes.length - borders.get(torn + 1));
    assertThat(Entries.read(joined)).isEqualTo(without(entries, torn));
  }

  @Property(tries = 1_000, edgeCases = EdgeCasesMode.NONE)
  void whicheverByteIsChangedOnlyItsRecordIsLost(
      @ForAll("steps") List<Entries.Step> steps,
      @ForAll @DoubleRange(max = 1) double where,
      @ForAll byte change) {
    List<UsageEntry> entries = Entries.of(steps);
    byte[] bytes = Entries.bytes(entries);
    int at = at(where, bytes.length);
    bytes[at] ^= change == 0 ? 1 : change;
    assertThat(Entries.read(bytes)).isEqualTo(without(entries, lineOf(entries, at)));
  }

  /** Totals lose at most what the damaged record added, whatever moment one asks about. */
  @Property(tries = 500, edgeCases = EdgeCasesMode.NONE)
  void sumsLoseNoMoreThanTheDamagedRecord(
      @ForAll("steps") List<Entries.Step> steps,
      @ForAll @DoubleRange(max = 1) double where,
      @ForAll @DoubleRange(max = 1) double when) {
    List<UsageEntry> entries = Entries.of(steps);
    int damaged = at(where, entries.size());
    long lastMs = entries.get(entries.size() - 1).atMs();
    long sinceMs = 999_000L + at(when, (int) (lastMs - 999_000 + 2_000));
    Map<String, Long> whole = truth(entries, sinceMs);
    Map<String, Long> read = sums(without(entries, damaged), sinceMs);
    UsageEntry lost = entries.get(damaged);
    for (Map.Entry<String, Long> each : whole.entrySet()) {
      long missing = each.getValue() - read.getOrDefault(each.getKey(), 0L);
      boolean isIts = each.getKey().equals(lost.id());
      assertThat(missing).isBetween(0L, isIts ? lost.grown().gpuNs() : 0L);
    }
    assertThat(sums(entries, sinceMs)).isEqualTo(whole);
    assertThat(sums(Thinning.of(entries), 0)).isEqualTo(truth(entries, 0));
  }

  /** The plain sum of what each record in the span added. */
  private static Map<String, Long> truth(List<UsageEntry> entries, long sinceMs) {
    Map<String, Long> sums = new HashMap<>();
    entries.stream()
        .filter(entry -> entry.atMs() > sinceMs)
        .forEach(entry -> sums.merge(entry.id(), entry.grown().gpuNs(), Long::sum));
    return sums;
  }

  private static Map<String, Long> sums(List<UsageEntry> entries, long sinceMs) {
    UsageSum sum = new UsageSum(Instant.ofEpochMilli(sinceMs), Integer.MAX_VALUE, key -> true);
    entries.forEach(sum::add);
    Map<String, Long> sums = new HashMap<>();
    sum.records().forEach(r -> sums.put(r.virtualGpu(), r.gpuTime().toNanos()));
    return sums;
  }

  private static int lineOf(List<UsageEntry> entries, int at) {
    List<Integer> borders = Entries.borders(entries);
    int line = 0;
    while (borders.get(line + 1) <= at) {
      line++;
    }
    return line;
  }

  private static List<UsageEntry> without(List<UsageEntry> entries, int index) {
    List<UsageEntry> others = new ArrayList<>(entries);
    others.remove(index);
    return others;
  }

  private static int at(double where, int below) {
    return Math.min(below - 1, (int) (where * below));
  }
}
