package dev.vgpu.samples.spring;

import ai.onnxruntime.OnnxTensor;
import ai.onnxruntime.OrtEnvironment;
import ai.onnxruntime.OrtException;
import ai.onnxruntime.OrtSession;
import dev.vgpu.GpuPool;
import dev.vgpu.VirtualGpu;
import dev.vgpu.onnxruntime.VgpuOrt;
import dev.vgpu.onnxruntime.VgpuSession;
import dev.vgpu.request.MemorySize;
import dev.vgpu.request.PreemptionClass;
import dev.vgpu.request.VirtualGpuRequest;
import dev.vgpu.samples.onnx.SampleModel;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import java.util.concurrent.atomic.AtomicLong;
import org.jspecify.annotations.Nullable;

/** A batch job that scores batches until it is closed. */
final class BatchRows implements AutoCloseable {
  /**
   * The rows of a batch. A batch that gives way is begun again, so it should be short against the
   * time between two requests of others. This many rows use the processor as well as more do.
   */
  private static final int BATCH = 32;

  private final CompletableFuture<Void> end = new CompletableFuture<>();
  private final CountDownLatch first = new CountDownLatch(1);
  private final AtomicLong batches = new AtomicLong();
  private volatile @Nullable VirtualGpu gpu;
  private volatile boolean closing;

  private BatchRows() {}

  /** One batch. */
  private interface Batch {
    void score() throws OrtException, InterruptedException;
  }

  /** What the job does; as much of it as is done with one session open. */
  private interface Job {
    void run() throws OrtException, InterruptedException;
  }

  /**
   * What the job has done so far.
   *
   * @param batches how many are finished
   * @param gpuSeconds the GPU time, that of unfinished batches included; 0 without a virtual GPU
   * @param preemptions how often the job gave way
   */
  record Progress(long batches, double gpuSeconds, long preemptions) {}

  /** {@return a job on an offline virtual GPU: a client of the service's seat} */
  static BatchRows onVirtualGpu() {
    BatchRows job = new BatchRows();
    return job.start(job::runOnVirtualGpu);
  }

  /** {@return the same job without a virtual GPU: nothing tells it to give way} */
  static BatchRows uncontrolled() {
    BatchRows job = new BatchRows();
    return job.start(job::runUncontrolled);
  }

  private BatchRows start(Job work) {
    Thread thread =
        new Thread(
            () -> {
              try {
                work.run();
                end.complete(null);
              } catch (Throwable e) { // the caller is told by progressAfter() and close()
                end.completeExceptionally(e);
              } finally {
                first.countDown();
              }
            },
            "batch-job");
    thread.setDaemon(true);
    thread.start();
    return this;
  }

  private void runOnVirtualGpu() throws OrtException, InterruptedException {
    VirtualGpuRequest request =
        VirtualGpuRequest.builder()
            .name("batch-job")
            .preemptionClass(PreemptionClass.OFFLINE)
            .memory(MemorySize.ofMebibytes(256))
            .build();
    OrtEnvironment environment = OrtEnvironment.getEnvironment();
    try (GpuPool pool = GpuPool.open();
        VirtualGpu ours = pool.acquire(request);
        OrtSession.SessionOptions options = oneThread();
        VgpuSession session = VgpuOrt.session(ours, environment, model(), options);
        OnnxTensor rows = rows(environment)) {
      gpu = ours;
      scoreUntilClosed(() -> session.run(Map.of(SampleModel.INPUT, rows)).close());
    }
  }

  private void runUncontrolled() throws OrtException, InterruptedException {
    OrtEnvironment environment = OrtEnvironment.getEnvironment();
    try (OrtSession.SessionOptions options = oneThread();
        OrtSession session = environment.createSession(model(), options);
        OnnxTensor rows = rows(environment)) {
      scoreUntilClosed(() -> session.run(Map.of(SampleModel.INPUT, rows)).close());
    }
  }

  private void scoreUntilClosed(Batch batch) throws OrtException, InterruptedException {
    while (!closing) {
      batch.score();
      batches.incrementAndGet();
      first.countDown();
    }
  }

  private static byte[] model() {
    return SampleModel.of(ServedModel.WIDTH, 512, 8);
  }

  private static OnnxTensor rows(OrtEnvironment environment) throws OrtException {
    return OnnxTensor.createTensor(environment, new float[BATCH][ServedModel.WIDTH]);
  }

  private static OrtSession.SessionOptions oneThread() throws OrtException {
    OrtSession.SessionOptions options = new OrtSession.SessionOptions();
    options.setIntraOpNumThreads(1);
    return options;
  }

  /** Waits for the first batch, which is slow. */
  void awaitFirst() throws InterruptedException {
    first.await();
  }

  /**
   * {@return what it has done so far}
   *
   * @throws IllegalStateException if the job has failed
   */
  Progress progress() throws InterruptedException {
    return progressAfter(0);
  }

  /**
   * {@return what it has done when the given time has passed}
   *
   * @throws IllegalStateException if the job has failed
   */
  Progress progressAfter(long lengthNs) throws InterruptedException {
    try {
      end.get(lengthNs, TimeUnit.NANOSECONDS);
      throw new IllegalStateException("the batch job has ended");
    } catch (ExecutionException e) {
      throw new IllegalStateException("the batch job failed", e.getCause());
    } catch (TimeoutException e) {
      VirtualGpu now = gpu;
      return now == null
          ? new Progress(batches.get(), 0, 0)
          : new Progress(
              batches.get(), now.usage().gpuTime().toNanos() / 1e9, now.usage().preemptions());
    }
  }

  /** Waits for the running batch. */
  @Override
  public void close() {
    closing = true;
    end.exceptionally(failure -> null).join();
  }
}
