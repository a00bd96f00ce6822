package dev.vgpu.cuda;

import static dev.vgpu.cuda.layout.ShmLayout.GRANT_OFFSET;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.mockito.Mockito.mock;

import dev.vgpu.VgpuException;
import dev.vgpu.cuda.layout.ShmLayout.Grant;
import dev.vgpu.request.MemorySize;
import dev.vgpu.request.VirtualGpuRequest;
import dev.vgpu.spi.EnforcedLease;
import dev.vgpu.spi.Enforcement;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Map;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** A seat that was given up leaves the pages of its leases to the next one. */
class GivenUpHookTest {
  @TempDir Path run;

  private Enforcement seat() throws IOException {
    Path hook = run.resolve("hook.so");
    if (!Files.exists(hook)) {
      Files.createFile(hook);
    }
    return new CudaHookBackend(Map.of("VGPU_HOOK", hook.toString())).open(run);
  }

  private EnforcedLease prepare(Enforcement by, int mebibytes) throws IOException {
    Path directory = Files.createDirectories(run.resolve("leases").resolve("a"));
    VirtualGpuRequest request =
        VirtualGpuRequest.builder().memory(MemorySize.ofMebibytes(mebibytes)).build();
    return by.prepare("a", directory, TestGpu.named("GPU-1"), request, mock());
  }

  @Test
  void aClosedSeatPreparesNothing() throws IOException {
    Enforcement old = seat();
    old.close();
    try (Enforcement next = seat()) {
      EnforcedLease lease = prepare(next, 256);
      try (FakeHook hook = FakeHook.attach(run, "a", ProcessHandle.current().pid())) {
        lease.open();
        assertThatThrownBy(() -> prepare(old, 128)).isInstanceOf(VgpuException.class);
        assertThat(hook.isOpen()).isTrue();
        assertThat(hook.grant.longAt(GRANT_OFFSET + Grant.MEMORY_LIMIT)).isEqualTo(256L << 20);
      }
      lease.close();
    }
  }
}
