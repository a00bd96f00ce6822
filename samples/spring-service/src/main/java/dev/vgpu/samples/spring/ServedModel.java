package dev.vgpu.samples.spring;

import ai.onnxruntime.OnnxTensor;
import ai.onnxruntime.OrtEnvironment;
import ai.onnxruntime.OrtException;
import ai.onnxruntime.OrtSession;
import dev.vgpu.CallOptions;
import dev.vgpu.onnxruntime.VgpuSession;
import dev.vgpu.samples.onnx.SampleModel;
import java.time.Duration;
import java.util.Map;
import java.util.Set;

/** A model that scores rows. Safe for use by several threads. */
final class ServedModel implements AutoCloseable {
  /** The number of values in a row. */
  static final int WIDTH = 32;

  /** The largest number of rows in a request. */
  static final int MOST_ROWS = 256;

  /** How long a request waits for its turn; after that, the client has given up. */
  private static final CallOptions PATIENCE = CallOptions.ofTimeout(Duration.ofSeconds(10));

  private final VgpuSession session;

  ServedModel(VgpuSession session) {
    this.session = session;
  }

  /** The first run of a shape is slow and has the whole quota, so it must not be a client's. */
  void warmUp() throws OrtException, InterruptedException {
    try (OnnxTensor most = tensor(new float[MOST_ROWS][WIDTH])) {
      session.warmUp(Map.of(SampleModel.INPUT, most));
    }
  }

  /**
   * {@return the scores of rows, in order}
   *
   * @param rows 1 to {@value #MOST_ROWS} of {@value #WIDTH} values each
   * @throws dev.vgpu.GpuTimeoutException if it gets no turn in time
   */
  float[][] score(float[][] rows) throws OrtException, InterruptedException {
    try (OnnxTensor input = tensor(rows);
        OrtSession.Result result =
            session.run(Map.of(SampleModel.INPUT, input), Set.of(SampleModel.OUTPUT), PATIENCE)) {
      return (float[][]) result.get(0).getValue();
    }
  }

  private static OnnxTensor tensor(float[][] rows) throws OrtException {
    return OnnxTensor.createTensor(OrtEnvironment.getEnvironment(), rows);
  }

  @Override
  public void close() {
    session.close();
  }
}
