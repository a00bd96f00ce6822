package dev.vgpu.onnxruntime;

import static org.assertj.core.api.Assertions.assertThat;

import ai.onnxruntime.OnnxTensor;
import ai.onnxruntime.OrtEnvironment;
import ai.onnxruntime.OrtException;
import ai.onnxruntime.OrtSession;
import dev.vgpu.CallOptions;
import dev.vgpu.GpuPool;
import dev.vgpu.GpuPoolOptions;
import dev.vgpu.PreemptibleCall;
import dev.vgpu.VirtualGpu;
import dev.vgpu.request.MemorySize;
import dev.vgpu.request.PreemptionClass;
import dev.vgpu.request.VirtualGpuRequest;
import dev.vgpu.testing.CallCost;
import java.time.Duration;
import java.util.Map;
import java.util.Set;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;

/**
 * A run in a session of a virtual GPU beside the same run in a call that its caller makes. The
 * times are printed, but not judged.
 */
class CallCostTest {
  private static final int RUNS = 3000;
  private static final OrtEnvironment ENVIRONMENT = OrtEnvironment.getEnvironment();

  /** ONNX Runtime copies the shape of each input when it is asked for it. */
  private static final int COPIED_BYTES = 2 * 32;

  @ParameterizedTest
  @EnumSource(names = {"ONLINE", "OFFLINE"})
  void aRunAllocatesLittleMoreThanACallWithTheSameRun(PreemptionClass preemptionClass)
      throws Exception {
    VirtualGpuRequest request =
        VirtualGpuRequest.builder()
            .name("cost")
            .preemptionClass(preemptionClass)
            .memory(MemorySize.ofMebibytes(256))
            .build();
    CallOptions options = CallOptions.ofTimeout(Duration.ofSeconds(10));
    try (GpuPool pool =
            GpuPool.open(GpuPoolOptions.builder().scope(GpuPoolOptions.Scope.THIS_JVM).build());
        VirtualGpu gpu = pool.acquire(request);
        OrtSession.SessionOptions sessionOptions = new OrtSession.SessionOptions();
        VgpuSession session =
            VgpuOrt.session(gpu, ENVIRONMENT, TestModel.product(1), sessionOptions);
        OnnxTensor x = OnnxTensor.createTensor(ENVIRONMENT, new float[][] {{1, 2}});
        OnnxTensor w = OnnxTensor.createTensor(ENVIRONMENT, new float[][] {{3}, {4}})) {
      Map<String, OnnxTensor> inputs = Map.of("x", x, "w", w);
      Set<String> outputs = Set.of("y");
      session.warmUp(inputs);
      CallOptions stated =
          options.toBuilder().memory(session.peakMemory(inputs).orElseThrow()).build();
      OrtSession bare = session.session();
      CallCost[] costs =
          CallCost.of(
              RUNS,
              () -> bare.run(inputs, outputs).close(),
              () -> gpu.call(() -> bare.run(inputs, outputs), stated).close(),
              () -> gpu.call(new Preemptible(unused -> bare.run(inputs, outputs)), stated).close(),
              () -> session.run(inputs, outputs, options).close());
      CallCost call = preemptionClass == PreemptionClass.OFFLINE ? costs[2] : costs[1];
      CallCost added = costs[3].above(call);
      System.out.println(
          preemptionClass
              + ": a bare run "
              + costs[0]
              + "; gpu.call adds "
              + call.above(costs[0])
              + "; the session adds to that "
              + added);
      assertThat(added.bytes()).isLessThanOrEqualTo(100 + COPIED_BYTES);
    }
  }

  private record Preemptible(PreemptibleRun.Attempt run)
      implements PreemptibleCall<OrtSession.Result> {
    @Override
    public OrtSession.Result call() throws OrtException {
      return run.run(null);
    }

    @Override
    public void cancel() {}
  }
}
