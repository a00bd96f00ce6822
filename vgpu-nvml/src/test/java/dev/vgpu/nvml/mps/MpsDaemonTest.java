package dev.vgpu.nvml.mps;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.mockito.Mockito.mock;
import static org.mockito.Mockito.timeout;
import static org.mockito.Mockito.verify;
import static org.mockito.Mockito.when;

import dev.vgpu.VgpuException;
import dev.vgpu.request.GpuId;
import dev.vgpu.request.MemorySize;
import dev.vgpu.request.VirtualGpuRequest;
import dev.vgpu.watch.PhysicalGpu;
import java.io.IOException;
import java.io.RandomAccessFile;
import java.nio.file.Files;
import java.nio.file.Path;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;

/** Planted or damaged files about daemons. */
@Timeout(value = 60, threadMode = Timeout.ThreadMode.SEPARATE_THREAD)
class MpsDaemonTest {
  @TempDir private Path directory;

  private Path daemon(String name) throws IOException {
    Path own = directory.resolve(name);
    Files.writeString(
        Files.createDirectories(own.resolve("pipe")).resolve("nvidia-cuda-mps-control.pid"), "1");
    return own.resolve("gpu");
  }

  private static void pipe(Path pipe) throws Exception {
    assertThat(new ProcessBuilder("mkfifo", pipe.toString()).start().waitFor()).isZero();
  }

  @Test
  void oneThatCannotBeReadHidesNoOther() throws Exception {
    Files.writeString(daemon("0"), "");
    pipe(daemon("1"));
    Files.createDirectory(daemon("2"));
    try (RandomAccessFile huge = new RandomAccessFile(daemon("3").toFile(), "rw")) {
      huge.setLength(1L << 40);
    }
    Path nothing = daemon("4");
    Files.writeString(daemon("5"), "GPU-1\n");
    Files.writeString(daemon("6"), "GPU-2");
    assertThat(nothing).doesNotExist();
    assertThat(MpsDaemon.directories(directory))
        .containsExactlyInAnyOrder(new GpuId("GPU-1"), new GpuId("GPU-2"));
  }

  @Test
  void supervisionGoesOnAfterALackOfMemory() throws Exception {
    Files.writeString(daemon("mps/0"), "GPU-1");
    MpsEnforcement.Machine machine = mock();
    when(machine.anyTool())
        .thenThrow(new VgpuException("at the first check"), new OutOfMemoryError("thread"))
        .thenReturn(new MpsTool(Path.of("/bin/false")));
    MpsEnforcement enforcement = new MpsEnforcement(directory, mock(), machine, 10);
    verify(machine, timeout(30_000).atLeast(3)).anyTool();
    enforcement.close();
  }

  @Test
  void aLeaseHasTheToolOfItsGpusDriverAlsoAfterALeftover() throws Exception {
    PhysicalGpu gpu = mock();
    when(gpu.id()).thenReturn(new GpuId("GPU-1"));
    Files.writeString(daemon("mps/0"), "GPU-1");
    MpsEnforcement.Machine machine = mock();
    when(machine.anyTool()).thenReturn(new MpsTool(Path.of("/bin/false")));
    when(machine.tool(gpu)).thenThrow(new VgpuException("its own tool"));
    MpsEnforcement enforcement = new MpsEnforcement(directory, mock(), machine, 10);
    verify(machine, timeout(30_000).atLeastOnce()).anyTool();
    VirtualGpuRequest request =
        VirtualGpuRequest.builder().memory(MemorySize.ofMebibytes(1)).build();
    assertThatThrownBy(() -> enforcement.prepare("a", directory, gpu, request, mock()))
        .hasMessage("its own tool");
    enforcement.close();
  }

  @Test
  void pipeInPlaceOfTheNumberIsNoProcess() throws Exception {
    GpuId gpu = new GpuId("GPU-1");
    MpsDaemon daemon = new MpsDaemon(new MpsTool(Path.of("/bin/false")), directory, gpu);
    Path pipes = Path.of(daemon.clientEnvironment().get("CUDA_MPS_PIPE_DIRECTORY"));
    pipe(Files.createDirectories(pipes).resolve("nvidia-cuda-mps-control.pid"));
    assertThat(daemon.process()).isEmpty();
  }
}
