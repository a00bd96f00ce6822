package dev.vgpu.memory;

import static org.assertj.core.api.Assertions.assertThat;

import dev.vgpu.CallOptions;
import dev.vgpu.request.MemorySize;
import dev.vgpu.request.PreemptionClass;
import org.junit.jupiter.api.Test;

class PeakMemoryTest {
  private static final long MOST = 1L << 40;

  private final PeakMemory peaks = new PeakMemory();

  private static Shapes batch(long size) {
    Shapes shapes = Shapes.ofThisThread();
    shapes.add(new long[] {size, 10});
    return shapes;
  }

  private void learn(long size, long bytes) {
    peaks.learn(batch(size), bytes, MOST);
  }

  private static MemorySize bytes(long bytes) {
    return MemorySize.ofBytes(bytes);
  }

  @Test
  void nothingIsKnownAtFirst() {
    assertThat(peaks.find(batch(1))).isNull();
    assertThat(peaks.find(batch(1), CallOptions.defaults())).isNull();
  }

  @Test
  void aTenthIsAddedToWhatWasMeasured() {
    learn(4, 1000);
    assertThat(peaks.find(batch(4))).isEqualTo(bytes(1100));
  }

  @Test
  void noMoreIsAskedForThanTheQuotaLeaves() {
    peaks.learn(batch(4), 1000, 1050);
    assertThat(peaks.find(batch(4))).isEqualTo(bytes(1050));
  }

  @Test
  void smallerRunsNeedAtMostTheLeastOfTheLargerOnes() {
    learn(16, 1600);
    learn(8, 800);
    learn(32, 3200);
    assertThat(peaks.find(batch(6))).isEqualTo(bytes(880));
    assertThat(peaks.find(batch(9))).isEqualTo(bytes(1760));
    assertThat(peaks.find(batch(32))).isEqualTo(bytes(3520));
    assertThat(peaks.find(batch(33))).isNull();
  }

  @Test
  void aLargerRunNeedsAtLeastWhatASmallerOneDoes() {
    learn(8, 800);
    learn(16, 100);
    assertThat(peaks.find(batch(16))).isEqualTo(bytes(880));
    learn(4, 100);
    assertThat(peaks.find(batch(4))).isEqualTo(bytes(110));
  }

  @Test
  void theOtherOptionsOfTheCallAreKept() {
    learn(4, 1000);
    CallOptions urgent =
        CallOptions.builder().preemptionClass(PreemptionClass.ONLINE).maxPreemptions(3).build();
    CallOptions found = peaks.find(batch(4), urgent);
    assertThat(found.memory()).isEqualTo(bytes(1100));
    assertThat(found.preemptionClass()).contains(PreemptionClass.ONLINE);
    assertThat(found.maxPreemptions()).isEqualTo(3);
    assertThat(peaks.find(batch(4), CallOptions.defaults()).preemptionClass()).isEmpty();
  }

  @Test
  void theSameOptionsAreCombinedOnce() {
    learn(4, 1000);
    CallOptions options = CallOptions.builder().maxPreemptions(3).build();
    assertThat(peaks.find(batch(4), options)).isSameAs(peaks.find(batch(4), options));
  }

  @Test
  void shapesWithinKnownOnesTakeNoPlaceOfLargerOnes() {
    int most = PeakMemory.MOST_SHAPES;
    learn(2L * most, 1000);
    for (int size = 1; size < 2 * most; size++) {
      assertThat(peaks.find(batch(size))).isEqualTo(bytes(1100));
    }
    learn(2 * most + 1, 2000);
    assertThat(peaks.find(batch(2 * most + 1))).isEqualTo(bytes(2200));
    assertThat(peaks.find(batch(most))).isEqualTo(bytes(1100));
  }

  @Test
  void onlySoManyShapesAreKept() {
    for (int size = 1; size <= PeakMemory.MOST_SHAPES + 1; size++) {
      learn(size, 1000);
    }
    assertThat(peaks.find(batch(PeakMemory.MOST_SHAPES))).isEqualTo(bytes(1100));
    assertThat(peaks.find(batch(PeakMemory.MOST_SHAPES + 1))).isNull();
  }
}
