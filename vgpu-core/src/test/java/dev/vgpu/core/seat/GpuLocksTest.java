package dev.vgpu.core.seat;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.vgpu.core.discovery.Discovery;
import dev.vgpu.core.disk.ProcessIdentity;
import dev.vgpu.files.RunPlace;
import dev.vgpu.request.GpuId;
import dev.vgpu.spi.GpuProvider;
import dev.vgpu.watch.PhysicalGpu;
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
        new GpuLocks(Map.of("XDG_RUNTIME_DIR", session.toString()), RunPlace.Origin.DEFAULT)) {
      locks.take(List.of(gpu), discovery, session, ProcessIdentity.current());
    }
    assertThat(victim).hasContent("kept");
    assertThat(place.resolve("GPU-1.lock")).doesNotExist();
  }

  private static PhysicalGpu gpu() {
    PhysicalGpu gpu = Mockito.mock(PhysicalGpu.class);
    Mockito.when(gpu.id()).thenReturn(new GpuId("GPU-1"));
    Mockito.when(gpu.provider()).thenReturn("nvml");
    return gpu;
  }

  private static GpuLocks locks(Path session, Path machine, RunPlace.Origin origin) {
    return new GpuLocks(Map.of("XDG_RUNTIME_DIR", session.toString()), origin, machine);
  }

  /** The machine's seat is another process's here: that of the test's parent. */
  @Test
  void noOtherSeatManagesAGpuOfTheMachinesSeat(@TempDir Path session) throws Exception {
    Path machine = session.resolve("machine");
    Discovery discovery = new Discovery(List.of());
    ProcessIdentity parent =
        ProcessIdentity.of(ProcessHandle.current().parent().orElseThrow().pid());
    GpuLocks machines = locks(session, machine, RunPlace.Origin.MACHINE);
    machines.take(List.of(gpu()), discovery, session, parent);
    assertThat(PosixFilePermissions.toString(Files.getPosixFilePermissions(machine)))
        .isEqualTo("rwxr-xr-x");
    assertThat(
            PosixFilePermissions.toString(
                Files.getPosixFilePermissions(machine.resolve("GPU-1.lock"))))
        .as("whoever may read a file can lock it")
        .isEqualTo("rw-------");
    GpuLocks users = locks(session, machine, RunPlace.Origin.DEFAULT);
    assertThatThrownBy(
            () -> users.take(List.of(gpu()), discovery, session, ProcessIdentity.current()))
        .isInstanceOf(GpuLocks.GpuTakenException.class)
        .hasMessageContaining("the machine's seat manages this GPU")
        .hasMessageContaining("usermod -aG vgpu");
    machines.close();
    users.take(List.of(gpu()), discovery, session, ProcessIdentity.current());
    assertThat(session.resolve("vgpu-gpus/GPU-1.holder")).exists();
    users.close();
    assertThat(session.resolve("vgpu-gpus/GPU-1.holder")).doesNotExist();
  }

  private static Discovery in(String scope) {
    PhysicalGpu gpu = gpu();
    GpuProvider provider = Mockito.mock(GpuProvider.class);
    Mockito.when(provider.gpus()).thenReturn(List.of(gpu));
    Mockito.when(provider.scope(gpu.id())).thenReturn(scope);
    Discovery discovery = new Discovery(List.of(provider));
    assertThat(discovery.gpus()).hasSize(1);
    return discovery;
  }

  /** Emulated GPUs of two directories. */
  @Test
  void gpusOfTwoScopesAreDifferentGpus(@TempDir Path session) throws Exception {
    ProcessIdentity parent =
        ProcessIdentity.of(ProcessHandle.current().parent().orElseThrow().pid());
    Path machine = session.resolve("machine");
    try (GpuLocks theirs = locks(session, machine, RunPlace.Origin.DEFAULT);
        GpuLocks ours = locks(session, machine, RunPlace.Origin.DEFAULT);
        GpuLocks again = locks(session, machine, RunPlace.Origin.DEFAULT)) {
      theirs.take(List.of(gpu()), in("one"), session, parent);
      ours.take(List.of(gpu()), in("two"), session, ProcessIdentity.current());
      assertThatThrownBy(
              () -> again.take(List.of(gpu()), in("one"), session, ProcessIdentity.current()))
          .isInstanceOf(GpuLocks.GpuTakenException.class)
          .hasMessageContaining("another process manages this GPU");
    }
  }
}
