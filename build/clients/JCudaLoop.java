import static jcuda.driver.JCudaDriver.cuCtxCreate;
import static jcuda.driver.JCudaDriver.cuCtxDestroy;
import static jcuda.driver.JCudaDriver.cuCtxSynchronize;
import static jcuda.driver.JCudaDriver.cuDeviceGet;
import static jcuda.driver.JCudaDriver.cuInit;
import static jcuda.driver.JCudaDriver.cuLaunchKernel;
import static jcuda.driver.JCudaDriver.cuMemAlloc;
import static jcuda.driver.JCudaDriver.cuMemFree;
import static jcuda.driver.JCudaDriver.cuMemGetInfo;
import static jcuda.driver.JCudaDriver.cuMemcpyDtoH;
import static jcuda.driver.JCudaDriver.cuMemcpyHtoD;
import static jcuda.driver.JCudaDriver.cuModuleGetFunction;
import static jcuda.driver.JCudaDriver.cuModuleLoad;

import java.util.ArrayDeque;
import java.util.Arrays;
import java.util.Deque;
import java.util.Locale;
import jcuda.CudaException;
import jcuda.Pointer;
import jcuda.Sizeof;
import jcuda.driver.CUcontext;
import jcuda.driver.CUdevice;
import jcuda.driver.CUdeviceptr;
import jcuda.driver.CUfunction;
import jcuda.driver.CUmodule;
import jcuda.driver.JCudaDriver;

/** JCuda's driver interface, doing what loop.py does. Usage: JCudaLoop FILE.ptx */
final class JCudaLoop {
  private static final long BLOCK = 8 << 20;
  private static final long SPIN_NS = 1_000_000;
  private static final long LOOP_NS = 3_000_000_000L;
  private static final int VALUES = 1 << 16;

  private JCudaLoop() {}

  public static void main(String[] args) {
    JCudaDriver.setExceptionsEnabled(true);
    cuInit(0);
    CUdevice device = new CUdevice();
    cuDeviceGet(device, 0);
    CUcontext context = new CUcontext();
    cuCtxCreate(context, 0, device);
    CUmodule module = new CUmodule();
    cuModuleLoad(module, args[0]);
    takeAll();
    System.out.println("computed right: " + computes(function(module, "vgpu_saxpy")));
    keepBusy(function(module, "vgpu_spin"));
    cuCtxDestroy(context);
  }

  private static CUfunction function(CUmodule module, String name) {
    CUfunction function = new CUfunction();
    cuModuleGetFunction(function, module, name);
    return function;
  }

  private static void takeAll() {
    long[] free = new long[1];
    long[] total = new long[1];
    cuMemGetInfo(free, total);
    System.out.println("# memory_shown=" + total[0]);
    Deque<CUdeviceptr> taken = new ArrayDeque<>();
    try {
      while (true) {
        taken.add(take(BLOCK));
      }
    } catch (CudaException e) {
      System.out.println("# memory_taken=" + taken.size() * BLOCK);
      System.out.println("refused: " + e.getMessage());
    }
    taken.forEach(JCudaDriver::cuMemFree);
    cuMemFree(take(BLOCK));
    System.out.println("given back, taken again");
  }

  private static CUdeviceptr take(long bytes) {
    CUdeviceptr block = new CUdeviceptr();
    cuMemAlloc(block, bytes);
    return block;
  }

  private static boolean computes(CUfunction saxpy) {
    float[] x = new float[VALUES];
    float[] y = new float[VALUES];
    Arrays.fill(y, 1);
    for (int i = 0; i < VALUES; i++) {
      x[i] = i % 100;
    }
    long bytes = (long) VALUES * Sizeof.FLOAT;
    CUdeviceptr onGpuX = take(bytes);
    CUdeviceptr onGpuY = take(bytes);
    cuMemcpyHtoD(onGpuX, Pointer.to(x), bytes);
    cuMemcpyHtoD(onGpuY, Pointer.to(y), bytes);
    Pointer arguments =
        Pointer.to(
            Pointer.to(new float[] {2}),
            Pointer.to(onGpuX),
            Pointer.to(onGpuY),
            Pointer.to(new long[] {VALUES}));
    cuLaunchKernel(saxpy, VALUES / 256, 1, 1, 256, 1, 1, 0, null, arguments, null);
    cuMemcpyDtoH(Pointer.to(y), onGpuY, bytes);
    for (int i = 0; i < VALUES; i++) {
      if (y[i] != 2 * x[i] + 1) {
        return false;
      }
    }
    return true;
  }

  private static void keepBusy(CUfunction spin) {
    Pointer arguments = Pointer.to(Pointer.to(new long[] {SPIN_NS}));
    cuLaunchKernel(spin, 132, 1, 1, 32, 1, 1, 0, null, arguments, null);
    cuCtxSynchronize();
    long launches = 0;
    long start = System.nanoTime();
    while (System.nanoTime() - start < LOOP_NS) {
      for (int i = 0; i < 20; i++) {
        cuLaunchKernel(spin, 132, 1, 1, 32, 1, 1, 0, null, arguments, null);
      }
      launches += 20;
      cuCtxSynchronize();
    }
    double busy = 100.0 * launches * SPIN_NS / (System.nanoTime() - start);
    System.out.printf(Locale.ROOT, "# busy_percent=%.2f%n", busy);
  }
}
