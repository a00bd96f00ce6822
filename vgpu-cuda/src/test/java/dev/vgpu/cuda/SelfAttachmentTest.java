package dev.vgpu.cuda;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.vgpu.VgpuException;
import dev.vgpu.cuda.attach.SelfAttachment;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Map;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

class SelfAttachmentTest {
  @TempDir Path directory;

  @Test
  void afterCudaIsLoadedItIsTooLate() throws IOException {
    Path maps = directory.resolve("maps");
    Files.writeString(
        maps,
        """
        7f00-7f01 r-xp 00000000 08:01 1 /usr/lib/libc.so.6
        7f02-7f03 rw-p 00000000 00:00 0
        7f04-7f05 r-xp 00000000 08:01 2 /usr/lib/x86_64-linux-gnu/libcuda.so.570.1
        """);
    assertThat(SelfAttachment.loadedDriver(maps))
        .contains("/usr/lib/x86_64-linux-gnu/libcuda.so.570.1");
    assertThatThrownBy(
            () -> SelfAttachment.attach(Map.of("LD_PRELOAD", "/x.so", "VGPU_LEASE", "a"), maps))
        .isInstanceOf(IllegalStateException.class)
        .hasMessageContaining("CUDA is already loaded")
        .hasMessageContaining("libcuda.so.570.1");
  }

  @Test
  void aHookThatIsNoLibraryIsRefused() throws IOException {
    Path file = Files.writeString(directory.resolve("hook.so"), "not a library");
    assertThatThrownBy(
            () ->
                new CudaHookBackend(Map.of())
                    .attachThisProcess(Map.of("LD_PRELOAD", file + ":", "VGPU_LEASE", "a")))
        .isInstanceOf(VgpuException.class)
        .hasMessageContaining("cannot load the hook");
  }
}
