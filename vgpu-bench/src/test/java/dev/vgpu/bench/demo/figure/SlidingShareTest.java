package dev.vgpu.bench.demo.figure;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.within;

import java.util.ArrayList;
import java.util.List;
import net.jqwik.api.ForAll;
import net.jqwik.api.Property;
import net.jqwik.api.Tag;
import net.jqwik.api.constraints.IntRange;
import net.jqwik.api.constraints.Size;
import org.junit.jupiter.api.Test;

class SlidingShareTest {
  @Test
  void evenAlternationHoldsEverywhere() {
    List<Span> spans = new ArrayList<>();
    for (int i = 0; i < 100; i++) {
      spans.add(new Span(0, i * 4L, i * 4L + 3));
      spans.add(new Span(1, i * 4L + 3, i * 4L + 4));
    }
    SlidingShare share = share(spans, 40, 400);
    assertThat(share.least()).isEqualTo(0.75);
    assertThat(share.most()).isEqualTo(0.75);
  }

  @Test
  void pauseOfOneTenantIsFoundWherePhaseAverageHidesIt() {
    List<Span> spans = List.of(new Span(0, 0, 45), new Span(1, 45, 55), new Span(0, 55, 100));
    SlidingShare share = share(spans, 10, 100);
    assertThat(share.least()).isEqualTo(0);
    assertThat(share.most()).isEqualTo(1);
    assertThat(share.worstFrom(0.9)).isEqualTo(0);
  }

  @Test
  void phaseShorterThanTheWindowIsOneWindow() {
    SlidingShare share = share(List.of(new Span(0, 0, 3), new Span(1, 3, 4)), 100, 4);
    assertThat(share.least()).isEqualTo(0.75);
    assertThat(share.most()).isEqualTo(0.75);
  }

  @Test
  void windowWithoutUseIsNoShare() {
    assertThat(share(List.of(), 10, 100).most()).isEqualTo(0);
  }

  /** The exact extremes are at least as wide as those of a fine scan, and only slightly wider. */
  @Property
  @Tag("property")
  void noScannedWindowIsOutside(
      @ForAll @Size(min = 1, max = 30) List<@IntRange(min = 0, max = 60) Integer> lengths,
      @ForAll @IntRange(min = 1, max = 50) int window) {
    List<Span> spans = new ArrayList<>();
    long at = 0;
    for (int i = 0; i < lengths.size(); i++) {
      spans.add(new Span(i % 3, at, at + lengths.get(i)));
      at += lengths.get(i);
    }
    SlidingShare share = share(spans, window, at + 1);
    BusyTime tenant = BusyTime.of(spans, 0);
    BusyTime all = BusyTime.of(spans);
    long length = Math.min(window, at + 1);
    for (long start = 0; start + length <= at + 1; start++) {
      long used = all.between(start, start + length);
      double scanned = used == 0 ? 0 : tenant.between(start, start + length) / (double) used;
      assertThat(scanned).isBetween(share.least() - 1e-12, share.most() + 1e-12);
    }
  }

  @Test
  void overlappingSpansCountOnce() {
    BusyTime busy = BusyTime.of(List.of(new Span(0, 5, 10), new Span(1, 0, 6), new Span(0, 8, 9)));
    assertThat(busy.between(0, 10)).isEqualTo(10);
    assertThat(busy.between(4, 7)).isEqualTo(3);
    assertThat(busy.between(10, 20)).isEqualTo(0);
    assertThat(busy.edgesNs()).containsExactly(0, 10);
  }

  @Test
  void busyTimeIsExactBetweenAnyMoments() {
    BusyTime busy = BusyTime.of(List.of(new Span(0, 10, 20), new Span(0, 30, 40)));
    assertThat(busy.between(0, 100)).isEqualTo(20);
    assertThat(busy.between(15, 35)).isEqualTo(10);
    assertThat(busy.between(20, 30)).isEqualTo(0);
    assertThat(busy.between(-5, 11)).isEqualTo(1);
    assertThat(BusyTime.of(List.of()).between(0, 10)).isEqualTo(0);
  }

  @Test
  void worstIsTheFartherOne() {
    assertThat(new SlidingShare(0.74, 0.755).worstFrom(0.75)).isCloseTo(0.74, within(1e-12));
    assertThat(new SlidingShare(0.749, 0.77).worstFrom(0.75)).isCloseTo(0.77, within(1e-12));
  }

  private static SlidingShare share(List<Span> spans, long window, long length) {
    return SlidingShare.ofUsed(BusyTime.of(spans, 0), BusyTime.of(spans), window, 0, length);
  }
}
