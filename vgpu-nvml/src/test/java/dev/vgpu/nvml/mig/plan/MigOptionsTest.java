package dev.vgpu.nvml.mig.plan;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.offset;

import dev.vgpu.request.GpuId;
import dev.vgpu.request.MemorySize;
import java.util.List;
import java.util.concurrent.atomic.AtomicLong;
import org.assertj.core.data.Offset;
import org.junit.jupiter.api.Test;

/** Beside the values that the equations give for GPUs so small that they are solved by hand. */
class MigOptionsTest {
  private static final Offset<Double> PRECISE = offset(1e-6);

  private static final double EMPTY_OF_ONE = 4.414141414141;
  private static final double TAKEN_OF_ONE = 3.646464646465;
  private static final double EMPTY_OF_TWO = 6.484262292597;
  private static final double HALF_OF_TWO = 6.157154483265;
  private static final double HALVES_OF_TWO = 5.570758818192;
  private static final double WHOLE_OF_TWO = 5.356564502580;

  /** Each GPU has another size, because what is known of one is kept. */
  private static final AtomicLong SIZE = new AtomicLong();

  private static MigProfile profile(int slices, Integer... starts) {
    MemorySize memory = MemorySize.ofBytes(SIZE.incrementAndGet());
    return new MigProfile(
        slices, slices + "g", slices, slices, starts.length, List.of(starts), memory, slices);
  }

  private static MigInstance instance(MigProfile profile, int start) {
    return new MigInstance(
        start, profile.id(), start, profile.memorySlices(), profile.computeSlices(), "", false);
  }

  private static double options(MigGeometry geometry, MigInstance... instances) {
    return MigOptions.of(new MigGpu(new GpuId("GPU-0"), geometry, List.of(instances)));
  }

  @Test
  void aGpuOfOnePartIsEmptyOrTaken() {
    MigProfile whole = profile(1, 0);
    MigGeometry geometry = new MigGeometry(1, 1, List.of(whole));
    assertThat(options(geometry)).isCloseTo(EMPTY_OF_ONE, PRECISE);
    assertThat(options(geometry, instance(whole, 0))).isCloseTo(TAKEN_OF_ONE, PRECISE);
  }

  @Test
  void aGpuOfTwoPartsIsCutOrWhole() {
    MigProfile half = profile(1, 0, 1);
    MigProfile whole = profile(2, 0);
    MigGeometry geometry = new MigGeometry(2, 2, List.of(half, whole));
    assertThat(options(geometry)).isCloseTo(EMPTY_OF_TWO, PRECISE);
    assertThat(options(geometry, instance(half, 0))).isCloseTo(HALF_OF_TWO, PRECISE);
    assertThat(options(geometry, instance(half, 1))).isCloseTo(HALF_OF_TWO, PRECISE);
    assertThat(options(geometry, instance(half, 0), instance(half, 1)))
        .isCloseTo(HALVES_OF_TWO, PRECISE);
    assertThat(options(geometry, instance(whole, 0))).isCloseTo(WHOLE_OF_TWO, PRECISE);
    MigGpu empty = new MigGpu(new GpuId("GPU-0"), geometry, List.of());
    assertThat(MigOptions.with(empty, half, 1)).isCloseTo(HALF_OF_TWO, PRECISE);
  }

  /** Two parts of the memory, and compute for only one of them. */
  @Test
  void computeMayBeShorterThanMemory() {
    MigProfile part = profile(1, 0, 1);
    MigGeometry geometry = new MigGeometry(1, 2, List.of(part));
    assertThat(options(geometry)).isCloseTo(EMPTY_OF_ONE, PRECISE);
    assertThat(options(geometry, instance(part, 1))).isCloseTo(TAKEN_OF_ONE, PRECISE);
  }

  /** An instance of no known profile stays, and what it takes is never free. */
  @Test
  void anUnknownInstanceIsAsIfItsSlicesWereNotThere() {
    MigProfile part = profile(1, 0, 1, 2, 3);
    MigGeometry geometry = new MigGeometry(4, 4, List.of(part));
    MigInstance strange = new MigInstance(9, 77, 1, 3, 3, "", false);
    assertThat(options(geometry, strange)).isCloseTo(EMPTY_OF_ONE, PRECISE);
    assertThat(options(geometry, strange, instance(part, 0))).isCloseTo(TAKEN_OF_ONE, PRECISE);
  }

  @Test
  void mediaEnginesAreNoOtherShape() {
    MigProfile whole = profile(1, 0);
    MigProfile media =
        new MigProfile(2, "1g+me", 1, 1, 1, List.of(0), whole.memory(), whole.multiprocessors());
    MigGeometry geometry = new MigGeometry(1, 1, List.of(whole, media));
    assertThat(options(geometry)).isCloseTo(EMPTY_OF_ONE, PRECISE);
    assertThat(options(geometry, instance(media, 0))).isCloseTo(TAKEN_OF_ONE, PRECISE);
  }
}
