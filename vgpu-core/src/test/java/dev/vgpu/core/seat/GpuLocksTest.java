package dev.vgpu.core.seat;

import static org.assertj.core.api.Assertions.assertThat;

import dev.vgpu.GpuId;
import dev.vgpu.PhysicalGpu;
import dev.vgpu.core.discovery.Discovery;
import dev.vgpu.core.disk.ProcessIdentity;
import dev.vgpu.core.disk.RunDirectory;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.attribute.PosixFilePermissions;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.mockito.Mockito;

class GpuLocksTest {
  @Test
  void namesOfFilesHoldNothingOdd() {
    assertThat(GpuLocks.fileName("GPU-ddf350be_3.A")).isEqualTo("GPU-ddf350be_3.A");
    assertThat(GpuLocks.fileName("MIG-a/1:2 ü")).isEqualTo("MIG-a_1_2__");
  }

  /** Another user has planted a symbolic link in place of a file to be written. */
  @Test
  void nothingIsWrittenWhereAnotherUserCanWrite(@TempDir Path session) throws Exception {
    Path place = Files.createDirectory(session.resolve("vgpu-gpus"));
    Files.setPosixFilePermissions(place, PosixFilePermissions.fromString("rwxrwxrwx"));
    Path victim = Files.writeString(session.resolve("victim"), "kept");
    Files.createSymbolicLink(place.resolve("GPU-1.holder.new"), victim);
    PhysicalGpu gpu = Mockito.mock(PhysicalGpu.class);
    Mockito.when(gpu.id()).thenReturn(new GpuId("GPU-1"));
    Mockito.when(gpu.provider()).thenReturn("nvml");
    Discovery discovery = new Discovery(List.of());
    try (GpuLocks locks =
        new GpuLocks(Map.of("XDG_RUNTIME_DIR", session.toString()), RunDirectory.Origin.DEFAULT)) {
      locks.take(List.of(gpu), discovery, session, ProcessIdentity.current());
    }
    assertThat(victim).hasContent("kept");
    assertThat(place.resolve("GPU-1.lock")).doesNotExist();
  }
}
