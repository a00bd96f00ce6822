package dev.vgpu.bench.harness;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

class TimelineTest {
  @TempDir private Path directory;

  private Path stamps(long... words) throws IOException {
    ByteBuffer bytes =
        ByteBuffer.allocate(Long.BYTES * words.length).order(ByteOrder.LITTLE_ENDIAN);
    for (long word : words) {
      bytes.putLong(word);
    }
    return Files.write(Files.createTempFile(directory, "t", ".stamps"), bytes.array());
  }

  @Test
  void timeIsThatOfKernelsOfSwitchesAndOfGapsInTurns() throws IOException {
    Path first = stamps(100, 200, 1_000, 1_100, 1_110, 1_210, 1_400, 1_500);
    Path second = stamps(100, 150, 1_230, 1_330, 1_333, 1_380, 1_600, 1_700);
    Timeline timeline = Timeline.read(List.of(first, second));
    // Without the first quarter of the time, and without what began after the first program's end.
    assertThat(timeline.wallNs()).isEqualTo(500);
    assertThat(timeline.kernels()).containsExactly(3L, 2L);
    assertThat(timeline.switches()).isEqualTo(2);
    assertThat(timeline.switchIdleNs()).isEqualTo(20 + 20);
    assertThat(timeline.idleNs()).isEqualTo(10 + 3);
    assertThat(timeline.busyNs()).isEqualTo(500 - 20 - 20 - 10 - 3);
    assertThat(timeline.medianKernelNs()).isEqualTo(100);
  }

  @Test
  void kernelThatAnotherProgramInterruptsCountsOnce() throws IOException {
    Path interrupted = stamps(0, 0, 10, 20, 1_000, 3_000, 3_000, 3_100);
    Path other = stamps(10, 20, 1_500, 2_000, 2_000, 2_500, 3_050, 3_100);
    Timeline timeline = Timeline.read(List.of(interrupted, other));
    assertThat(timeline.busyNs()).isEqualTo(timeline.wallNs()).isEqualTo(2_100);
    assertThat(timeline.switches()).as("there, back, and there").isEqualTo(3);
    assertThat(timeline.switchIdleNs()).isZero();
  }

  @Test
  void emulatedGpuLeavesNoStamps() throws IOException {
    assertThat(Timeline.read(List.of(stamps(0, 0), stamps())).wallNs()).isZero();
  }
}
