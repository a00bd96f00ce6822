package dev.vgpu.nvml.mig;

import static org.assertj.core.api.Assertions.assertThat;

import dev.vgpu.request.GpuId;
import java.io.RandomAccessFile;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;

/** Planted or damaged records of instances. */
@Timeout(value = 60, threadMode = Timeout.ThreadMode.SEPARATE_THREAD)
class MigRecordTest {
  @TempDir private Path directory;

  private MigRecord record(String lease) {
    MigRecord.Terms terms = new MigRecord.Terms(1, 1, true);
    return MigRecord.intended(lease, new GpuId("GPU-1"), 19, 0, List.of(3), terms);
  }

  private void pipe(String name) throws Exception {
    Path pipe = directory.resolve(name);
    assertThat(new ProcessBuilder("mkfifo", pipe.toString()).start().waitFor()).isZero();
  }

  @Test
  void whatIsNoRecordHidesNoOther() throws Exception {
    record("good-1").write(directory);
    Files.createSymbolicLink(directory.resolve("link-1"), directory.resolve("good-1"));
    pipe("pipe-1");
    Files.createDirectory(directory.resolve("directory-1"));
    Files.writeString(directory.resolve("short-1"), "gpu=GPU-1\nprofile=1");
    Files.write(directory.resolve("garbage-1"), new byte[] {-1, -2, 0, 7});
    try (RandomAccessFile huge = new RandomAccessFile(directory.resolve("huge-1").toFile(), "rw")) {
      huge.setLength(1L << 40);
    }
    assertThat(MigRecord.all(directory)).containsOnlyKeys("good-1");
  }

  @Test
  void whatLiesInItsWayIsNotWrittenTo() throws Exception {
    Path foreign = Files.writeString(directory.resolve("foreign"), "stays");
    Files.createSymbolicLink(directory.resolve(".a-1.new"), foreign);
    pipe(".b-1.new");
    record("a-1").write(directory);
    record("b-1").write(directory);
    assertThat(foreign).hasContent("stays");
    assertThat(MigRecord.all(directory)).containsOnlyKeys("a-1", "b-1");
  }
}
