package dev.vgpu.request;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import net.jqwik.api.Arbitraries;
import net.jqwik.api.Arbitrary;
import net.jqwik.api.Combinators;
import net.jqwik.api.ForAll;
import net.jqwik.api.Property;
import net.jqwik.api.Provide;
import net.jqwik.api.Tag;
import net.jqwik.api.constraints.LongRange;

@Tag("property")
class MemorySizeProperties {
  /** Amounts of every magnitude, many of them a whole number of some unit. */
  @Provide
  Arbitrary<Long> amounts() {
    Arbitrary<Long> any = Arbitraries.longs().greaterOrEqual(0);
    Arbitrary<Long> whole =
        Combinators.combine(
                Arbitraries.longs().between(0, 4096), Arbitraries.integers().between(0, 50))
            .as((amount, shift) -> amount << shift);
    return Arbitraries.oneOf(any, whole);
  }

  @Property
  void textIsReadBackAsTheSameSize(@ForAll("amounts") long bytes) {
    MemorySize size = MemorySize.ofBytes(bytes);
    String text = size.toString();
    assertThat(MemorySize.fromString(text)).isEqualTo(size);
    assertThat(MemorySize.fromString(" " + text.toLowerCase(java.util.Locale.ROOT) + " "))
        .isEqualTo(size);
  }

  @Property
  void orderIsThatOfTheBytes(@ForAll("amounts") long one, @ForAll("amounts") long other) {
    assertThat(MemorySize.ofBytes(one).compareTo(MemorySize.ofBytes(other)))
        .isEqualTo(Long.compare(one, other));
  }

  @Property
  void sumIsExactOrRefused(@ForAll("amounts") long one, @ForAll("amounts") long other) {
    MemorySize first = MemorySize.ofBytes(one);
    MemorySize second = MemorySize.ofBytes(other);
    if (other <= Long.MAX_VALUE - one) {
      assertThat(first.plus(second).bytes()).isEqualTo(one + other);
    } else {
      assertThatThrownBy(() -> first.plus(second)).isInstanceOf(ArithmeticException.class);
    }
  }

  @Property
  void mebibytesAreExactOrRefused(@ForAll @LongRange(min = 0) long mebibytes) {
    if (mebibytes <= Long.MAX_VALUE >> 20) {
      assertThat(MemorySize.ofMebibytes(mebibytes).bytes()).isEqualTo(mebibytes * (1L << 20));
    } else {
      assertThatThrownBy(() -> MemorySize.ofMebibytes(mebibytes))
          .isInstanceOf(IllegalArgumentException.class);
    }
  }
}
