package dev.vgpu.samples.onnx;

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
import java.nio.FloatBuffer;
import java.util.Map;

/**
 * Scores a table on an offline virtual GPU. If a service on this node has work, it gets the GPU at
 * once: the running batch ends at the model's next operator, and is repeated later. This does not
 * change the job's result.
 */
public final class BatchJob {
  /** The job's terms; online models on this node come first. */
  static final VirtualGpuRequest REQUEST =
      VirtualGpuRequest.builder()
          .name("batch-job")
          .preemptionClass(PreemptionClass.OFFLINE)
          .memory(MemorySize.ofMebibytes(256))
          .build();

  static final int BATCH = 256;
  private static final int WIDTH = 32;
  private static final OrtEnvironment ENVIRONMENT = OrtEnvironment.getEnvironment();

  private BatchJob() {}

  /**
   * Runs the job.
   *
   * @param args the number of rows; 50,000 if not given
   * @throws OrtException if the model cannot be run
   * @throws InterruptedException if it is interrupted
   */
  public static void main(String[] args) throws OrtException, InterruptedException {
    int rows = args.length == 0 ? 50_000 : Integer.parseInt(args[0]);
    // #region offline
    try (GpuPool pool = GpuPool.open();
        VirtualGpu gpu = pool.acquire(REQUEST);
        VgpuSession session = open(gpu)) {
      double sum = score(session, rows);
      System.out.println(
          "rows=" + rows + " sum=" + sum + " preempted=" + gpu.usage().preemptions());
    }
    // #endregion offline
  }

  /**
   * {@return the model under a virtual GPU}
   *
   * @param gpu not closed with it
   */
  static VgpuSession open(VirtualGpu gpu) throws OrtException, InterruptedException {
    try (OrtSession.SessionOptions options = new OrtSession.SessionOptions()) {
      options.setIntraOpNumThreads(1);
      return VgpuOrt.session(gpu, ENVIRONMENT, SampleModel.of(WIDTH, 512, 8), options);
    }
  }

  /**
   * {@return the sum of all scores}
   *
   * @param session the session that scores
   * @param rows how many rows the table has
   */
  static double score(VgpuSession session, int rows) throws OrtException, InterruptedException {
    double sum = 0;
    for (int first = 0; first < rows; first += BATCH) {
      int count = Math.min(BATCH, rows - first);
      try (OnnxTensor table = read(first, count);
          OrtSession.Result result = session.run(Map.of(SampleModel.INPUT, table))) {
        FloatBuffer scores = ((OnnxTensor) result.get(0)).getFloatBuffer();
        while (scores.hasRemaining()) {
          sum += scores.get();
        }
      }
    }
    return sum;
  }

  /** Stands for reading the rows from storage. */
  private static OnnxTensor read(int first, int count) throws OrtException {
    FloatBuffer values = FloatBuffer.allocate(count * WIDTH);
    for (int i = 0; i < count * WIDTH; i++) {
      values.put(i, (first * WIDTH + i) % 97 / 97f);
    }
    return OnnxTensor.createTensor(ENVIRONMENT, values, new long[] {count, WIDTH});
  }
}
