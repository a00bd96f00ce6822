package dev.vgpu.samples.spring;

import ai.onnxruntime.OnnxTensor;
import ai.onnxruntime.OrtEnvironment;
import ai.onnxruntime.OrtException;
import ai.onnxruntime.OrtSession;
import dev.vgpu.GpuPool;
import dev.vgpu.MemorySize;
import dev.vgpu.PreemptionClass;
import dev.vgpu.VirtualGpu;
import dev.vgpu.VirtualGpuRequest;
import dev.vgpu.onnxruntime.VgpuOrt;
import dev.vgpu.onnxruntime.VgpuSession;
import dev.vgpu.samples.onnx.SampleModel;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import java.util.concurrent.atomic.AtomicLong;

/**
 * A batch job on an offline virtual GPU: it scores batches until it is closed. It is a client of
 * the service's seat, as any process of the node is.
 */
final class BatchRows implements AutoCloseable {
  private final CompletableFuture<Void> end = new CompletableFuture<>();
  private final Thread thread = new Thread(this::run, "batch-job");
  private final CountDownLatch first = new CountDownLatch(1);
  private volatile boolean closing;
  private final AtomicLong batches = new AtomicLong();

  private BatchRows() {}

  static BatchRows start() {
    BatchRows job = new BatchRows();
    job.thread.setDaemon(true);
    job.thread.start();
    return job;
  }

  private void run() {
    VirtualGpuRequest request =
        VirtualGpuRequest.builder()
            .name("batch-job")
            .preemptionClass(PreemptionClass.OFFLINE)
            .memory(MemorySize.ofMebibytes(256))
            .build();
    OrtEnvironment environment = OrtEnvironment.getEnvironment();
    byte[] model = SampleModel.of(ServedModel.WIDTH, 512, 8);
    try (GpuPool pool = GpuPool.open();
        VirtualGpu gpu = pool.acquire(request);
        OrtSession.SessionOptions options = oneThread();
        VgpuSession session = VgpuOrt.session(gpu, environment, model, options);
        OnnxTensor rows =
            OnnxTensor.createTensor(
                environment, new float[ServedModel.MOST_ROWS][ServedModel.WIDTH])) {
      while (!closing) {
        session.run(Map.of(SampleModel.INPUT, rows)).close();
        batches.incrementAndGet();
        first.countDown();
      }
      end.complete(null);
    } catch (Throwable e) { // the caller is told by close()
      end.completeExceptionally(e);
      first.countDown();
    }
  }

  private static OrtSession.SessionOptions oneThread() throws OrtException {
    OrtSession.SessionOptions options = new OrtSession.SessionOptions();
    options.setIntraOpNumThreads(1);
    return options;
  }

  /** {@return how many batches are finished} */
  long batches() {
    return batches.get();
  }

  /**
   * {@return the finished batches per second, while the caller waits}
   *
   * @throws IllegalStateException if the job has failed
   */
  double rateFor(long lengthNs) throws InterruptedException {
    first.await(); // its first run is slow
    long before = batches();
    long beganNs = NanoClock.now();
    try {
      end.get(lengthNs, TimeUnit.NANOSECONDS);
      throw new IllegalStateException("the batch job has ended");
    } catch (TimeoutException e) {
      return (batches() - before) * 1e9 / (NanoClock.now() - beganNs);
    } catch (ExecutionException e) {
      throw new IllegalStateException("the batch job failed", e.getCause());
    }
  }

  /** Waits for the running batch. */
  @Override
  public void close() {
    closing = true;
    end.join();
  }
}
