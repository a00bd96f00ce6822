package dev.vgpu.memory;

import static org.assertj.core.api.Assertions.assertThat;

import java.util.Arrays;
import org.junit.jupiter.api.Test;

class ShapesTest {
  private static Shapes of(long[]... inputs) {
    Shapes shapes = Shapes.ofThisThread();
    for (long[] input : inputs) {
      shapes.add(input);
    }
    return shapes.kept();
  }

  private static long[] input(long... dimensions) {
    return dimensions;
  }

  @Test
  void aRunIsWithinOneThatIsNowhereSmaller() {
    Shapes run = of(input(2, 3), input(4));
    assertThat(run.isWithin(run)).isTrue();
    assertThat(run.isWithin(of(input(2, 5), input(4)))).isTrue();
    assertThat(run.isWithin(of(input(2, 3), input(5)))).isTrue();
    assertThat(run.isWithin(of(input(1, 9), input(9)))).isFalse();
    assertThat(run.isWithin(of(input(9, 2), input(9)))).isFalse();
    assertThat(run.isWithin(of(input(9, 9), input(3)))).isFalse();
  }

  @Test
  void runsOfOtherRanksAreNotCompared() {
    assertThat(of(input(2, 2)).isWithin(of(input(9)))).isFalse();
    assertThat(of(input(2)).isWithin(of(input(9), input(9)))).isFalse();
    // As many numbers in all, divided otherwise among the inputs.
    assertThat(of(input(1, 1), input(1)).isWithin(of(input(9), input(9, 9)))).isFalse();
    assertThat(of(input(1), input(1, 1)).isWithin(of(input(9, 9), input(9)))).isFalse();
    assertThat(of(input()).isWithin(of(input()))).isTrue();
  }

  @Test
  void anAbsentInputIsWithinAnAbsentOneOnly() {
    Shapes shapes = Shapes.ofThisThread();
    shapes.addAbsent();
    shapes.add(input(3));
    Shapes absent = shapes.kept();
    assertThat(absent.isWithin(absent)).isTrue();
    shapes = Shapes.ofThisThread();
    shapes.addAbsent();
    shapes.add(input(2));
    assertThat(shapes.isWithin(absent)).isTrue();
    assertThat(absent.isWithin(shapes)).isFalse();
    assertThat(of(input(), input(3)).isWithin(absent)).isFalse();
    assertThat(of(input(3)).isWithin(absent)).isFalse();
  }

  @Test
  void moreInputsThanThereIsRoomForAreAllCompared() {
    long[] wide = new long[40];
    Arrays.fill(wide, 8);
    long[] smaller = wide.clone();
    smaller[39] = 7;
    assertThat(of(smaller).isWithin(of(wide))).isTrue();
    assertThat(of(wide).isWithin(of(smaller))).isFalse();
    assertThat(of(wide)).isNotEqualTo(of(smaller));
  }

  @Test
  void equalShapesAreOneKey() {
    Shapes kept = of(input(2, 3));
    Shapes again = Shapes.ofThisThread();
    again.add(input(2, 3));
    assertThat(again).isEqualTo(kept).hasSameHashCodeAs(kept).hasToString("[2, 2, 3]");
    assertThat(kept).isEqualTo(again).isNotEqualTo(of(input(3, 2))).isNotEqualTo("[2, 2, 3]");
    assertThat(kept.hashCode()).isNotEqualTo(of(input(3, 2)).hashCode());
  }

  @Test
  void whatIsKeptDoesNotChangeWithTheThreadsNextRun() {
    Shapes kept = of(input(2, 3));
    of(input(9, 9));
    assertThat(kept).isEqualTo(of(input(2, 3)));
  }
}
