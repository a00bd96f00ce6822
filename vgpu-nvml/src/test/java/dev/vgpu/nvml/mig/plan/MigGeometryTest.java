package dev.vgpu.nvml.mig.plan;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatCode;
import static org.assertj.core.api.Assertions.assertThatIllegalArgumentException;

import dev.vgpu.request.MemorySize;
import java.util.List;
import java.util.Optional;
import org.junit.jupiter.api.Test;

class MigGeometryTest {
  private static final MemorySize GIBIBYTE = MemorySize.ofGibibytes(1);
  private final MigGeometry a30 = MigGeometry.ofFour(MemorySize.ofGibibytes(24), 56);
  private final MigGeometry h100 = MigGeometry.ofSeven(MemorySize.ofGibibytes(80), 132);

  private static MigProfile profile(int slices, Integer... starts) {
    return new MigProfile(1, "x", slices, slices, 1, List.of(starts), GIBIBYTE, 1);
  }

  private MigProfile h100(String name) {
    return h100.profile(name).orElseThrow();
  }

  @Test
  void anImpossibleGpuIsRefused() {
    for (int[] slices : new int[][] {{0, 1}, {1, 0}, {1, 13}}) {
      assertThatIllegalArgumentException()
          .isThrownBy(() -> new MigGeometry(slices[0], slices[1], List.of()))
          .withMessageContaining("memorySlices=" + slices[1]);
    }
    assertThatCode(() -> new MigGeometry(1, 1, List.of())).doesNotThrowAnyException();
    assertThatCode(() -> new MigGeometry(1, 12, List.of())).doesNotThrowAnyException();
  }

  @Test
  void aPlaceOutsideTheGpuIsRefused() {
    assertThatIllegalArgumentException()
        .isThrownBy(() -> new MigGeometry(4, 4, List.of(profile(2, 0, 3))));
    assertThatIllegalArgumentException()
        .isThrownBy(() -> new MigGeometry(4, 4, List.of(profile(2, -1))));
    assertThatCode(() -> new MigGeometry(4, 4, List.of(profile(2, 0, 2))))
        .doesNotThrowAnyException();
  }

  @Test
  void anA30HasItsFiveProfiles() {
    assertThat(a30.profiles())
        .extracting(MigProfile::name)
        .containsExactly("1g.6gb", "1g.6gb+me", "2g.12gb", "2g.12gb+me", "4g.24gb");
    assertThat(a30.profiles())
        .extracting(MigProfile::multiprocessors)
        .containsExactly(14, 14, 28, 28, 56);
    assertThat(a30.profiles())
        .extracting(MigProfile::memory)
        .containsExactly(
            MemorySize.ofGibibytes(6),
            MemorySize.ofGibibytes(6),
            MemorySize.ofGibibytes(12),
            MemorySize.ofGibibytes(12),
            MemorySize.ofGibibytes(24));
  }

  @Test
  void anUnknownModelsMultiprocessorsAreInProportion() {
    assertThat(MigGeometry.ofSeven(MemorySize.ofGibibytes(80), 70).profiles())
        .extracting(MigProfile::multiprocessors)
        .containsExactly(10, 10, 10, 20, 30, 40, 70);
    assertThat(MigGeometry.ofSeven(GIBIBYTE, 1).profiles())
        .extracting(MigProfile::multiprocessors)
        .containsOnly(1);
    // An A100 tells all its multiprocessors, or those that instances can have.
    assertThat(MigGeometry.ofSeven(MemorySize.ofGibibytes(40), 98))
        .isEqualTo(MigGeometry.ofSeven(MemorySize.ofGibibytes(40), 108));
    // The same number of multiprocessors, and another way to cut them.
    assertThat(MigGeometry.ofFour(GIBIBYTE, 132).profiles())
        .extracting(MigProfile::multiprocessors)
        .containsExactly(33, 33, 66, 66, 132);
  }

  @Test
  void tablesAreKnownForFourAndSevenSlices() {
    assertThat(MigGeometry.known(7).map(MigGeometry::memorySlices)).contains(8);
    assertThat(MigGeometry.known(4).map(MigGeometry::memorySlices)).contains(4);
    assertThat(MigGeometry.known(5)).isEmpty();
  }

  @Test
  void aNameIsReadWithOrWithoutTheMemory() {
    assertThat(h100.profile("3G.40GB")).contains(h100("3g.40gb"));
    assertThat(h100.profile("1g")).contains(h100("1g.10gb"));
    assertThat(h100.profile("1g.10gb+me").map(MigProfile::hasMedia)).contains(true);
    assertThat(h100.profile("1")).isEmpty();
    assertThat(h100.profile(14)).contains(h100("2g.20gb"));
    assertThat(h100.profile(77)).isEqualTo(Optional.empty());
  }

  @Test
  void profilesThatHaveEnoughComeInOrderAndWithoutMediaEngines() {
    assertThat(h100.enough(MemorySize.ofGibibytes(10), 0))
        .extracting(MigProfile::name)
        .containsExactly("1g.10gb", "1g.20gb", "2g.20gb", "3g.40gb", "4g.40gb", "7g.80gb");
    assertThat(h100.enough(MemorySize.ofGibibytes(20), 28))
        .extracting(MigProfile::name)
        .containsExactly("2g.20gb", "3g.40gb", "4g.40gb", "7g.80gb");
    assertThat(h100.enough(GIBIBYTE, 29)).doesNotContain(h100("2g"));
    assertThat(h100.enough(GIBIBYTE, 100)).containsExactly(h100("7g"));
  }

  @Test
  void nothingIsTakenTwice() {
    MigOccupancy three = MigOccupancy.NONE.with(h100("3g"), 4);
    assertThat(three).isEqualTo(new MigOccupancy(0xf0, 3, false));
    assertThat(h100.isLegal(three, h100("4g"), 0)).isTrue();
    assertThat(h100.isLegal(three, h100("1g"), 4)).isFalse();
    assertThat(h100.isLegal(three, h100("1g"), 3)).isTrue();
    assertThat(h100.isLegal(three, h100("1g"), 7)).as("not one of its starts").isFalse();
    MigOccupancy seven = three.with(h100("4g"), 0);
    assertThat(seven).isEqualTo(new MigOccupancy(0xff, 7, false));
    assertThat(h100.isLegal(new MigOccupancy(0, 7, false), h100("1g"), 0)).isFalse();
    assertThat(h100.isLegal(new MigOccupancy(0, 6, false), h100("1g"), 0)).isTrue();
  }

  @Test
  void oneInstanceHasTheMediaEngines() {
    MigOccupancy media = MigOccupancy.NONE.with(h100("1g.10gb+me"), 0);
    assertThat(media).isEqualTo(new MigOccupancy(1, 1, true));
    assertThat(media.with(h100("1g"), 1).media()).isTrue();
    assertThat(h100.legalStarts(media, h100("1g.10gb+me"))).isEmpty();
    assertThat(h100.legalStarts(media, h100("1g"))).containsExactly(1, 2, 3, 4, 5, 6);
  }
}
