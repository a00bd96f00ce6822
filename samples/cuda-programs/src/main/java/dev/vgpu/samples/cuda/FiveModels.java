package dev.vgpu.samples.cuda;

import com.sun.jna.Pointer;
import dev.vgpu.GpuPool;
import dev.vgpu.VgpuException;
import dev.vgpu.VirtualGpu;
import dev.vgpu.request.MemorySize;
import dev.vgpu.request.PreemptionClass;
import dev.vgpu.request.SharePolicy;
import dev.vgpu.request.VirtualGpuRequest;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicReference;

/**
 * One JVM that serves five models, each under its own virtual GPU with its own memory, share and
 * class. Work that a model's thread does inside {@link VirtualGpu#run} is gated, measured and
 * charged to that virtual GPU, kernel by kernel. The code that uses CUDA does not change, and keeps
 * its own streams.
 */
public final class FiveModels {
  /** Memory beyond what any quota has left, requested to see that it is refused. */
  private static final long TOO_MUCH = 1L << 40;

  /** What a request launches before it waits for its result. */
  private static final int KERNELS = 8;

  private static final long PATIENCE_S = 60;

  private static final List<Model> MODELS =
      List.of(
          new Model("chat", PreemptionClass.ONLINE, 30, 512, 500),
          new Model("rank", PreemptionClass.ONLINE, 25, 384, 300),
          new Model("embed", PreemptionClass.NEARLINE, 20, 256, 1000),
          new Model("tag", PreemptionClass.NEARLINE, 15, 256, 200),
          new Model("train", PreemptionClass.OFFLINE, 10, 512, 2000));

  /**
   * A model.
   *
   * @param percent its fixed share of the GPU's time
   * @param mebibytes its memory quota
   * @param kernelUs how long one of its kernels takes
   */
  private record Model(
      String name, PreemptionClass preemptionClass, int percent, long mebibytes, long kernelUs) {
    VirtualGpuRequest request() {
      return VirtualGpuRequest.builder()
          .name(name)
          .memory(MemorySize.ofMebibytes(mebibytes))
          .computePercent(percent)
          .policy(SharePolicy.FIXED_SHARE)
          .preemptionClass(preemptionClass)
          .build();
    }
  }

  /** A model that a thread serves. */
  private static final class Served {
    final Model model;
    final VirtualGpu gpu;
    final Thread thread;
    final AtomicReference<Throwable> failure = new AtomicReference<>();
    final CountDownLatch ready;
    volatile boolean stopped;
    volatile boolean refused;
    long before;

    Served(Model model, VirtualGpu gpu, CountDownLatch ready) {
      this.model = model;
      this.gpu = gpu;
      this.ready = ready;
      this.thread = new Thread(this::serve, model.name);
      thread.setDaemon(true);
    }

    private void serve() {
      try {
        // One scope for the life of the thread: the scope takes no turn, its kernels do.
        gpu.run(this::work);
      } catch (InterruptedException | RuntimeException e) {
        failure.set(e);
      } finally {
        ready.countDown();
      }
    }

    private void work() {
      try (Cuda cuda = Cuda.open(0)) {
        Pointer stream = cuda.stream();
        Pointer kernel = cuda.kernel("vgpu_spin");
        Cuda.Parameter parameter = new Cuda.Parameter(model.kernelUs * 1000);
        long weights = cuda.allocate(model.mebibytes << 18); // a quarter
        refused = !cuda.tryAllocate(TOO_MUCH);
        ready.countDown();
        while (!stopped) {
          for (int i = 0; i < KERNELS; i++) {
            cuda.launch(kernel, 1, parameter, stream);
          }
          cuda.synchronize(stream);
        }
        cuda.free(weights);
        cuda.destroy(stream);
      } catch (CudaException e) {
        failure.set(e);
      }
    }

    long gpuNs() {
      return gpu.usage().gpuTime().toNanos();
    }
  }

  private FiveModels() {}

  /**
   * Runs it.
   *
   * @param args {@code --seconds N}: how long to measure (default 5)
   * @throws InterruptedException if it is interrupted
   * @throws CudaException if a model fails
   */
  public static void main(String[] args) throws InterruptedException, CudaException {
    long seconds = args.length == 2 && args[0].equals("--seconds") ? Long.parseLong(args[1]) : 5;
    List<VirtualGpu> gpus = new ArrayList<>();
    try (GpuPool pool = GpuPool.open()) {
      try {
        // #region attach
        for (Model model : MODELS) {
          gpus.add(pool.acquire(model.request()));
        }
        // Must come before anything has loaded the CUDA driver. Virtual GPUs acquired later attach
        // on first use.
        gpus.forEach(VirtualGpu::attachThisJvm);
        // #endregion attach
        serve(gpus, seconds);
      } finally {
        gpus.forEach(VirtualGpu::close);
      }
    } catch (VgpuException e) {
      throw new CudaException("no virtual GPUs: " + e.getMessage(), e);
    }
  }

  private static void serve(List<VirtualGpu> gpus, long seconds)
      throws InterruptedException, CudaException {
    CountDownLatch ready = new CountDownLatch(MODELS.size());
    List<Served> served = new ArrayList<>();
    for (int i = 0; i < MODELS.size(); i++) {
      served.add(new Served(MODELS.get(i), gpus.get(i), ready));
    }
    served.forEach(each -> each.thread.start());
    boolean begun = ready.await(PATIENCE_S, TimeUnit.SECONDS);
    if (!begun) {
      throw new CudaException("the models did not begin within " + PATIENCE_S + " s");
    }
    served.forEach(each -> each.before = each.gpuNs());
    long startNs = NanoClock.nowNs();
    boolean never = new CountDownLatch(1).await(seconds, TimeUnit.SECONDS);
    List<Long> used = served.stream().map(each -> each.gpuNs() - each.before).toList();
    long wallNs = NanoClock.nowNs() - startNs;
    served.forEach(each -> each.stopped = !never);
    System.out.println("model  class     share  got     memory    launches  beyond its quota");
    for (int i = 0; i < served.size(); i++) {
      System.out.println(line(served.get(i), used.get(i) * 100.0 / wallNs));
    }
    for (Served each : served) {
      each.thread.join();
      Throwable failure = each.failure.get();
      if (failure != null) {
        throw new CudaException(each.model.name + ": " + failure.getMessage(), failure);
      }
    }
  }

  private static String line(Served served, double percent) {
    return String.format(
        Locale.ROOT,
        "%-6s %-9s %3d %%  %5.2f %%  %4d MiB  %8d  %s",
        served.model.name,
        served.model.preemptionClass.name().toLowerCase(Locale.ROOT),
        served.model.percent,
        percent,
        served.model.mebibytes,
        served.gpu.usage().launches(),
        served.refused ? "refused" : "ALLOWED");
  }
}
