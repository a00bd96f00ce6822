package dev.vgpu.djl;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import ai.djl.MalformedModelException;
import ai.djl.inference.Predictor;
import ai.djl.ndarray.NDList;
import ai.djl.ndarray.NDManager;
import ai.djl.ndarray.types.Shape;
import ai.djl.repository.zoo.Criteria;
import ai.djl.repository.zoo.ZooModel;
import ai.djl.translate.Batchifier;
import ai.djl.translate.TranslateException;
import ai.djl.translate.Translator;
import ai.djl.translate.TranslatorContext;
import ai.onnx.proto.OnnxMl.ModelProto;
import dev.vgpu.CallOptions;
import dev.vgpu.GpuCapacityException;
import dev.vgpu.GpuPool;
import dev.vgpu.GpuPoolOptions;
import dev.vgpu.GpuTimeoutException;
import dev.vgpu.VirtualGpu;
import dev.vgpu.request.GpuId;
import dev.vgpu.request.MemorySize;
import dev.vgpu.request.VirtualGpuRequest;
import dev.vgpu.watch.PhysicalGpu;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.stream.IntStream;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.tribuo.util.onnx.ONNXContext;
import org.tribuo.util.onnx.ONNXOperators;

/** Uses DJL's ONNX Runtime engine, on the CPU. */
class VgpuDjlTest {
  private static final MemorySize QUOTA = MemorySize.ofMebibytes(64);
  private static final MemorySize WEIGHTS = MemorySize.ofMebibytes(16);

  /** Sums a row; counts the batches by their number of rows. */
  static final class Sums implements Translator<float[], Float> {
    final AtomicInteger batches = new AtomicInteger();
    final AtomicInteger rows = new AtomicInteger();

    @Override
    public NDList processInput(TranslatorContext context, float[] row) {
      rows.incrementAndGet();
      NDManager manager = context.getNDManager();
      return new NDList(manager.create(row, new Shape(1, row.length)));
    }

    @Override
    public NDList batchProcessInput(TranslatorContext context, List<float[]> inputs) {
      batches.incrementAndGet();
      float[] all = new float[inputs.size() * 3];
      for (int i = 0; i < inputs.size(); i++) {
        System.arraycopy(inputs.get(i), 0, all, i * 3, 3);
        rows.incrementAndGet();
      }
      return new NDList(context.getNDManager().create(all, new Shape(inputs.size(), 3)));
    }

    @Override
    public Float processOutput(TranslatorContext context, NDList output) {
      return output.singletonOrThrow().toFloatArray()[0];
    }

    @Override
    public List<Float> batchProcessOutput(TranslatorContext context, NDList output) {
      float[] sums = output.singletonOrThrow().toFloatArray();
      return IntStream.range(0, sums.length).mapToObj(i -> sums[i]).toList();
    }

    @Override
    public Batchifier getBatchifier() {
      return Batchifier.STACK;
    }
  }

  /** Sums many rows of one input; notes what its virtual GPU has reserved in the call. */
  private final class Rows implements Translator<float[], Float> {
    final List<MemorySize> reserved = new ArrayList<>();

    @Override
    public NDList processInput(TranslatorContext context, float[] values) {
      if (values.length % 3 != 0) {
        throw new IllegalArgumentException("not whole rows");
      }
      return new NDList(context.getNDManager().create(values, new Shape(values.length / 3, 3)));
    }

    @Override
    public Float processOutput(TranslatorContext context, NDList output) {
      reserved.add(gpu.usage().memoryReserved());
      return output.singletonOrThrow().toFloatArray()[0];
    }

    @Override
    public Batchifier getBatchifier() {
      return null;
    }
  }

  @TempDir Path directory;
  private final Sums sums = new Sums();
  private GpuPool pool;
  private VirtualGpu gpu;

  @BeforeEach
  void open() throws IOException {
    pool = GpuPool.open(GpuPoolOptions.builder().scope(GpuPoolOptions.Scope.THIS_JVM).build());
    gpu = pool.acquire(VirtualGpuRequest.builder().name("djl").memory(QUOTA).build());
    Files.write(directory.resolve("sum.onnx"), sumOfThree());
  }

  @AfterEach
  void close() {
    pool.close();
  }

  /** The product with a column of ones. */
  static byte[] sumOfThree() {
    ONNXContext graph = new ONNXContext();
    graph.setName("sum");
    graph.assignTo(
        graph
            .floatInput("row", 3)
            .apply(
                ONNXOperators.GEMM,
                graph.floatTensor(
                    "ones", List.of(3, 1), to -> to.put(new float[] {1, 1, 1}).flip())),
        graph.floatOutput("sum", 1));
    return ModelProto.newBuilder()
        .setIrVersion(6)
        .addOpsetImport(ONNXOperators.getOpsetProto())
        .setGraph(graph.buildGraph())
        .build()
        .toByteArray();
  }

  private Criteria<float[], Float> criteria(String file) {
    return Criteria.builder()
        .setTypes(float[].class, Float.class)
        .optModelPath(directory.resolve(file))
        .optEngine("OnnxRuntime")
        .optTranslator(sums)
        .build();
  }

  private ZooModel<float[], Float> load(CallOptions options) throws Exception {
    return VgpuDjl.load(gpu, criteria("sum.onnx"), WEIGHTS, options);
  }

  @Test
  void aPredictionIsACallAndItsResultIsRight() throws Exception {
    try (ZooModel<float[], Float> model = load(CallOptions.defaults());
        Predictor<float[], Float> predictor = model.newPredictor()) {
      long loaded = gpu.usage().calls();
      assertThat(loaded).isEqualTo(1);

      assertThat(predictor.predict(new float[] {1, 2, 3})).isEqualTo(6f);

      assertThat(gpu.usage().calls()).isEqualTo(loaded + 1);
    }
  }

  @Test
  void aBatchIsOneCallAndStaysOneBatch() throws Exception {
    try (ZooModel<float[], Float> model = load(CallOptions.defaults());
        Predictor<float[], Float> predictor = model.newPredictor()) {
      long loaded = gpu.usage().calls();

      assertThat(predictor.batchPredict(List.of(new float[] {1, 2, 3}, new float[] {4, 5, 6})))
          .containsExactly(6f, 15f);

      assertThat(gpu.usage().calls()).isEqualTo(loaded + 1);
      assertThat(sums.batches).hasValue(1);
      assertThat(sums.rows).hasValue(2);
    }
  }

  @Test
  void theWeightsAreHeldOfTheQuotaUntilTheModelIsClosed() throws Exception {
    try (ZooModel<float[], Float> model = load(CallOptions.defaults())) {
      assertThat(model.getName()).isEqualTo("sum");
      assertThat(gpu.usage().memoryReserved()).isEqualTo(WEIGHTS);
    }
    assertThat(gpu.usage().memoryReserved()).isEqualTo(MemorySize.ZERO);
  }

  @Test
  void aModelThatDoesNotFitItsQuotaIsRefused() {
    MemorySize tooMuch = MemorySize.ofMebibytes(65);
    assertThatThrownBy(
            () -> VgpuDjl.load(gpu, criteria("sum.onnx"), tooMuch, CallOptions.defaults()))
        .isInstanceOf(GpuCapacityException.class)
        .hasMessageContaining("quota=64MiB");
  }

  @Test
  void aFileThatIsNoModelLeavesNothingReserved() throws Exception {
    Files.write(directory.resolve("none.onnx"), new byte[] {1, 2, 3});
    assertThatThrownBy(
            () -> VgpuDjl.load(gpu, criteria("none.onnx"), WEIGHTS, CallOptions.defaults()))
        .isInstanceOfAny(MalformedModelException.class, IOException.class);
    assertThat(gpu.usage().memoryReserved()).isEqualTo(MemorySize.ZERO);
  }

  @Test
  void aLoadedModelCanBePutUnderAVirtualGpu() throws Exception {
    try (ZooModel<float[], Float> model =
            VgpuDjl.model(gpu, criteria("sum.onnx").loadModel(), CallOptions.defaults());
        Predictor<float[], Float> predictor = model.newPredictor()) {
      assertThat(gpu.usage().calls()).isZero();
      assertThat(predictor.predict(new float[] {1, 1, 1})).isEqualTo(3f);
      assertThat(gpu.usage().calls()).isEqualTo(1);
    }
  }

  @Test
  void theFirstPredictionHasTheQuotaAndLaterOnesTheirPeak() throws Exception {
    Rows rows = new Rows();
    try (ZooModel<float[], Float> model = load(CallOptions.defaults());
        Predictor<float[], Float> predictor = model.newPredictor(rows)) {
      predictor.predict(new float[3000]);
      predictor.predict(new float[3000]);
      predictor.predict(new float[300]);
      assertThat(rows.reserved).hasSize(3);
      assertThat(rows.reserved.get(0)).isEqualTo(QUOTA);
      assertThat(rows.reserved.get(1)).isBetween(WEIGHTS.plus(MemorySize.ofBytes(12_000)), QUOTA);
      assertThat(rows.reserved.get(1)).isNotEqualTo(QUOTA);
      assertThat(rows.reserved.get(2)).isEqualTo(rows.reserved.get(1));
    }
  }

  /** A GPU: nothing counts the memory of a JVM that is not under its virtual GPU. */
  private record Device(GpuId id) implements PhysicalGpu {
    @Override
    public String model() {
      return "test";
    }

    @Override
    public MemorySize memory() {
      return MemorySize.ofGibibytes(64);
    }

    @Override
    public MemorySize usableMemory() {
      return memory();
    }

    @Override
    public String provider() {
      return "test";
    }
  }

  @Test
  void whereNothingCountsTheMemoryEachPredictionHasTheQuota() throws Exception {
    pool.close();
    pool =
        GpuPool.open(
            GpuPoolOptions.builder()
                .scope(GpuPoolOptions.Scope.THIS_JVM)
                .gpus(List.of(new Device(new GpuId("GPU-djl"))))
                .build());
    gpu = pool.acquire(VirtualGpuRequest.builder().name("djl").memory(QUOTA).build());
    Rows rows = new Rows();
    try (ZooModel<float[], Float> model = load(CallOptions.defaults());
        Predictor<float[], Float> predictor = model.newPredictor(rows)) {
      predictor.predict(new float[3000]);
      predictor.predict(new float[3000]);
      assertThat(rows.reserved).containsExactly(QUOTA, QUOTA);
    }
  }

  /** The first attempt at it ends before the engine's work, and is a call of its own. */
  @Test
  void aLargerInputIsBegunAgainWithTheQuota() throws Exception {
    Rows rows = new Rows();
    try (ZooModel<float[], Float> model = load(CallOptions.defaults());
        Predictor<float[], Float> predictor = model.newPredictor(rows)) {
      predictor.predict(new float[300]);
      long calls = gpu.usage().calls();
      float[] large = new float[3000];
      large[0] = 7;
      assertThat(predictor.predict(large)).isEqualTo(7f);
      assertThat(gpu.usage().calls()).isEqualTo(calls + 2);
      assertThat(rows.reserved).last().isEqualTo(QUOTA);
      predictor.predict(large);
      assertThat(gpu.usage().calls()).isEqualTo(calls + 3);
      assertThat(rows.reserved).last().isNotEqualTo(QUOTA);
    }
  }

  @Test
  void aMeasuredBatchCoversSmallerOnes() throws Exception {
    try (ZooModel<float[], Float> model = load(CallOptions.defaults());
        Predictor<float[], Float> predictor = model.newPredictor()) {
      float[] row = {1, 2, 3};
      predictor.batchPredict(List.of(row, row, row));
      long calls = gpu.usage().calls();
      assertThat(predictor.batchPredict(List.of(row, row))).containsExactly(6f, 6f);
      assertThat(gpu.usage().calls()).isEqualTo(calls + 1);
    }
  }

  @Test
  void anErrorOfATranslatorIsTheCallers() throws Exception {
    try (ZooModel<float[], Float> model = load(CallOptions.defaults());
        Predictor<float[], Float> predictor = model.newPredictor(new Rows())) {
      predictor.predict(new float[3]);
      long calls = gpu.usage().calls();
      assertThatThrownBy(() -> predictor.predict(new float[4]))
          .isInstanceOf(TranslateException.class)
          .hasStackTraceContaining("not whole rows");
      assertThat(gpu.usage().calls()).isEqualTo(calls + 1);
    }
  }

  /** While another call has the rest of the quota, a prediction that states memory waits. */
  @Test
  void aPredictionWaitsUntilTheMemoryThatItStatesIsFree() throws Exception {
    MemorySize left = MemorySize.ofMebibytes(48);
    CallOptions options = CallOptions.builder().memory(left).timeout(Duration.ofMillis(1)).build();
    try (ZooModel<float[], Float> model = load(options);
        Predictor<float[], Float> predictor = model.newPredictor()) {
      CountDownLatch inside = new CountDownLatch(1);
      CountDownLatch leave = new CountDownLatch(1);
      CompletableFuture<Object> holder =
          gpu.submit(
              () -> {
                inside.countDown();
                leave.await();
                return null;
              },
              CallOptions.ofMemory(left));
      inside.await();
      assertThatThrownBy(() -> predictor.predict(new float[] {1, 2, 3}))
          .isInstanceOf(GpuTimeoutException.class);
      leave.countDown();
      holder.get();
    }
  }

  @Test
  void anInterruptedWaitIsToldAndTheInterruptStays() throws Exception {
    try (ZooModel<float[], Float> model = load(CallOptions.ofMemory(MemorySize.ofMebibytes(48)));
        Predictor<float[], Float> predictor = model.newPredictor()) {
      CompletableFuture<Boolean> interrupted = new CompletableFuture<>();
      Thread thread =
          new Thread(
              () -> {
                Thread.currentThread().interrupt();
                try {
                  predictor.predict(new float[] {1, 2, 3});
                  interrupted.complete(false);
                } catch (TranslateException e) {
                  interrupted.complete(Thread.currentThread().isInterrupted());
                }
              });
      thread.start();
      assertThat(interrupted.get()).isTrue();
    }
  }

  @Test
  void aStreamIsRefused() throws Exception {
    try (ZooModel<float[], Float> model = load(CallOptions.defaults());
        Predictor<float[], Float> predictor = model.newPredictor()) {
      assertThat(predictor.supportsStreaming()).isFalse();
      assertThatThrownBy(() -> predictor.streamingPredict(new float[] {1, 2, 3}))
          .isInstanceOf(UnsupportedOperationException.class);
    }
  }

  @Test
  void aClosedVirtualGpuRefusesPredictions() throws Exception {
    try (ZooModel<float[], Float> model = load(CallOptions.defaults());
        Predictor<float[], Float> predictor = model.newPredictor()) {
      gpu.close();
      assertThatThrownBy(() -> predictor.predict(new float[] {1, 2, 3}))
          .isInstanceOf(IllegalStateException.class);
    }
  }
}
