package dev.vgpu.samples.cuda;

import com.sun.jna.Memory;
import com.sun.jna.NativeLibrary;
import com.sun.jna.ptr.PointerByReference;
import dev.vgpu.GpuPool;
import dev.vgpu.GpuTurn;
import dev.vgpu.VirtualGpu;
import dev.vgpu.request.Capabilities;
import dev.vgpu.request.MemorySize;
import dev.vgpu.request.SharePolicy;
import dev.vgpu.request.VirtualGpuRequest;
import java.io.IOException;

/**
 * One JVM with two virtual GPUs, each with dedicated processors of the GPU. A thread uses the
 * processors of the virtual GPU that it has entered, and neither waits for the other's turn. Prints
 * the number of processors of each. With {@code --hold}, it waits for a line of input before it
 * ends.
 */
public final class TwoParts {
  // cuda.h
  private static final int RESOURCE_BYTES = 144;
  private static final int RESOURCE_SM_COUNT = 96;
  private static final int RESOURCE_TYPE_SM = 1;

  private TwoParts() {}

  private static VirtualGpuRequest request(String name, int percent) {
    return VirtualGpuRequest.builder()
        .name(name)
        .memory(MemorySize.ofMebibytes(512))
        .policy(SharePolicy.FIXED_SHARE)
        .computePercent(percent)
        .require(Capabilities.Compute.SPATIAL)
        .require(Capabilities.Scope.THIS_JVM)
        .build();
  }

  /**
   * Runs it.
   *
   * @param args {@code --hold}, or nothing
   * @throws InterruptedException if it is interrupted
   * @throws IOException if its input cannot be read
   */
  public static void main(String[] args) throws InterruptedException, IOException {
    // #region parts
    try (GpuPool pool = GpuPool.open();
        VirtualGpu chat = pool.acquire(request("chat", 30));
        VirtualGpu batch = pool.acquire(request("batch", 20))) {
      chat.attachThisJvm();
      batch.attachThisJvm();
      pool.leases()
          .forEach(lease -> System.out.println(lease.id() + " " + lease.backend().orElse("none")));
      System.out.println("outside " + processors());
      try (GpuTurn outer = chat.enter()) {
        System.out.println("in chat " + processors());
        try (GpuTurn inner = batch.enter()) {
          System.out.println("in batch " + processors() + " " + inner.isYieldRequested());
        }
        System.out.println("in chat again " + processors() + " " + outer.isYieldRequested());
      }
      // #endregion parts
      System.out.println("outside again " + processors());
      if (args.length > 0) {
        System.out.println("held " + (System.in.read() >= 0));
      }
    }
  }

  /** {@return how many processors this thread's context has; 0: it has none} */
  private static int processors() {
    NativeLibrary cuda = NativeLibrary.getInstance("libcuda.so.1");
    PointerByReference context = new PointerByReference();
    check(cuda.getFunction("cuCtxGetCurrent").invokeInt(new Object[] {context}));
    if (context.getValue() == null) {
      return 0;
    }
    Memory resource = new Memory(RESOURCE_BYTES);
    Object[] arguments = {context.getValue(), resource, RESOURCE_TYPE_SM};
    check(cuda.getFunction("cuCtxGetDevResource").invokeInt(arguments));
    return resource.getInt(RESOURCE_SM_COUNT);
  }

  private static void check(int code) {
    if (code != 0) {
      throw new IllegalStateException("CUDA error " + code);
    }
  }
}
