package dev.vgpu.cli.mig;

import dev.vgpu.GpuPool;
import dev.vgpu.VirtualGpu;
import dev.vgpu.request.Capabilities;
import dev.vgpu.request.MemorySize;
import dev.vgpu.request.VirtualGpuRequest;
import java.io.IOException;

/** Holds a MIG instance in which nothing runs. Prints its device, and again for each line. */
final class MigHolder {
  private MigHolder() {}

  public static void main(String[] args) throws IOException {
    VirtualGpuRequest request =
        VirtualGpuRequest.builder()
            .name("holder")
            .memory(MemorySize.ofMebibytes(Long.parseLong(args[0])))
            .require(Capabilities.FaultIsolation.ISOLATED)
            .build();
    try (GpuPool pool = GpuPool.open();
        VirtualGpu gpu = pool.acquire(request)) {
      do {
        System.out.println("device=" + gpu.environment().get("CUDA_VISIBLE_DEVICES"));
      } while (System.in.read() >= 0);
    }
  }
}
