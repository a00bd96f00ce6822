package dev.vgpu.onnxruntime;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import ai.onnxruntime.OnnxTensor;
import ai.onnxruntime.OrtEnvironment;
import ai.onnxruntime.OrtException;
import ai.onnxruntime.OrtSession;
import dev.vgpu.CallOptions;
import dev.vgpu.GpuCapacityException;
import dev.vgpu.GpuPool;
import dev.vgpu.GpuPoolOptions;
import dev.vgpu.GpuTimeoutException;
import dev.vgpu.VirtualGpu;
import dev.vgpu.memory.MemoryMeter;
import dev.vgpu.request.GpuId;
import dev.vgpu.request.MemorySize;
import dev.vgpu.request.PreemptionClass;
import dev.vgpu.request.VirtualGpuRequest;
import dev.vgpu.watch.PhysicalGpu;
import java.nio.FloatBuffer;
import java.nio.file.Files;
import java.nio.file.NoSuchFileException;
import java.nio.file.Path;
import java.time.Duration;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.locks.LockSupport;
import java.util.function.BooleanSupplier;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

class VgpuOrtTest {
  private static final AtomicInteger made = new AtomicInteger();
  private static final OrtEnvironment ENVIRONMENT = OrtEnvironment.getEnvironment();

  private record Device(GpuId id) implements PhysicalGpu {
    @Override
    public String model() {
      return "test";
    }

    @Override
    public MemorySize memory() {
      return MemorySize.ofGibibytes(8);
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

  private final GpuPool pool =
      GpuPool.open(
          GpuPoolOptions.builder()
              .scope(GpuPoolOptions.Scope.THIS_JVM)
              .gpus(List.of(new Device(new GpuId("GPU-ort-" + made.incrementAndGet()))))
              .build());

  @AfterEach
  void close() {
    pool.close();
  }

  private VirtualGpu gpu(PreemptionClass preemptionClass, MemorySize memory) {
    return pool.acquire(
        VirtualGpuRequest.builder()
            .name("ort")
            .preemptionClass(preemptionClass)
            .memory(memory)
            .build());
  }

  private static VgpuSession session(VirtualGpu gpu, int products) throws Exception {
    try (OrtSession.SessionOptions options = new OrtSession.SessionOptions()) {
      options.setIntraOpNumThreads(1);
      return VgpuOrt.session(gpu, ENVIRONMENT, TestModel.product(products), options);
    }
  }

  /**
   * Inputs such that each product consists of ones again: ones, divided by the number of columns.
   */
  private static final class Inputs implements AutoCloseable {
    final OnnxTensor x;
    final OnnxTensor w;

    Inputs(int rows, int columns) throws OrtException {
      x = tensor(rows, columns, 1);
      w = tensor(columns, columns, 1f / columns);
    }

    private static OnnxTensor tensor(int rows, int columns, float value) throws OrtException {
      float[] values = new float[rows * columns];
      Arrays.fill(values, value);
      return OnnxTensor.createTensor(
          ENVIRONMENT, FloatBuffer.wrap(values), new long[] {rows, columns});
    }

    Map<String, OnnxTensor> map() {
      return Map.of("x", x, "w", w);
    }

    @Override
    public void close() {
      x.close();
      w.close();
    }
  }

  private static void assertOnes(OrtSession.Result result, int count) {
    FloatBuffer values = ((OnnxTensor) result.get(0)).getFloatBuffer();
    assertThat(values.remaining()).isEqualTo(count);
    while (values.hasRemaining()) {
      assertThat(values.get()).isBetween(0.99f, 1.01f);
    }
  }

  /** Waits for another thread; the test's timeout bounds the wait. */
  private static void await(BooleanSupplier condition) {
    while (!condition.getAsBoolean()) {
      assertThat(Thread.interrupted()).as("the test's time is over").isFalse();
      LockSupport.parkNanos(100_000);
    }
  }

  private static CompletableFuture<OrtSession.Result> inThread(VgpuSession session, Inputs inputs) {
    CompletableFuture<OrtSession.Result> result = new CompletableFuture<>();
    new Thread(
            () -> {
              try {
                result.complete(session.run(inputs.map()));
              } catch (Exception | Error e) {
                result.completeExceptionally(e);
              }
            })
        .start();
    return result;
  }

  @Test
  void aRunIsACallOfItsVirtualGpuAndItsResultIsRight() throws Exception {
    try (VirtualGpu gpu = gpu(PreemptionClass.ONLINE, MemorySize.ofGibibytes(1));
        VgpuSession session = session(gpu, 3);
        Inputs inputs = new Inputs(4, 8)) {
      long before = gpu.usage().calls();
      try (OrtSession.Result result = session.run(inputs.map())) {
        assertOnes(result, 32);
      }
      assertThat(gpu.usage().calls()).isEqualTo(before + 1);
    }
  }

  @Test
  void thePeakIsLearntByShapeAndCoversSmallerShapes() throws Exception {
    try (VirtualGpu gpu = gpu(PreemptionClass.ONLINE, MemorySize.ofGibibytes(1));
        VgpuSession session = session(gpu, 2);
        Inputs large = new Inputs(512, 256);
        Inputs small = new Inputs(16, 256);
        Inputs wider = new Inputs(16, 512)) {
      assertThat(session.peakMemory(large.map())).isEmpty();
      session.run(large.map()).close();

      long inputs = 4L * (512 * 256 + 256 * 256);
      MemorySize peak = session.peakMemory(large.map()).orElseThrow();
      assertThat(peak.bytes()).isBetween(inputs, MemorySize.ofGibibytes(1).bytes());
      assertThat(session.peakMemory(small.map())).contains(peak);
      assertThat(session.peakMemory(wider.map())).isEmpty();
    }
  }

  /** Until its peak is known, a run has the whole quota; afterwards it gets only what it needs. */
  @Test
  void theFirstRunHasTheQuotaAloneAndTheNextOnlyItsPeak() throws Exception {
    MemorySize quota = MemorySize.ofGibibytes(2);
    try (VirtualGpu gpu = gpu(PreemptionClass.ONLINE, quota);
        VgpuSession session = session(gpu, 400);
        Inputs inputs = new Inputs(256, 256)) {
      CompletableFuture<OrtSession.Result> first = inThread(session, inputs);
      await(() -> gpu.usage().memoryReserved().equals(quota) || first.isDone());
      assertThat(first).isNotDone();
      first.get().close();

      MemorySize peak = session.peakMemory(inputs.map()).orElseThrow();
      MemorySize weights = gpu.usage().memoryReserved();
      CompletableFuture<OrtSession.Result> second = inThread(session, inputs);
      await(() -> gpu.usage().memoryReserved().equals(weights.plus(peak)) || second.isDone());
      assertThat(second).isNotDone();
      second.get().close();
    }
  }

  /** As with CUDA in a JVM that is not under its virtual GPU. */
  @Test
  void whereNothingCountsTheMemoryNothingIsLearnt() throws Exception {
    byte[] model = TestModel.product(1);
    try (VirtualGpu gpu = gpu(PreemptionClass.ONLINE, MemorySize.ofGibibytes(1));
        OrtSession.SessionOptions options = new OrtSession.SessionOptions();
        VgpuSession session =
            VgpuSession.load(
                gpu,
                MemoryMeter.ofAttached(gpu),
                model.length,
                () -> ENVIRONMENT.createSession(model, options),
                "uncounted");
        Inputs inputs = new Inputs(4, 4)) {
      session.warmUp(inputs.map());
      assertThat(session.peakMemory(inputs.map())).isEmpty();
    }
  }

  @Test
  void anOfflineRunGivesWayAndItsResultIsRightAllTheSame() throws Exception {
    try (VirtualGpu offline = gpu(PreemptionClass.OFFLINE, MemorySize.ofGibibytes(1));
        VirtualGpu online = gpu(PreemptionClass.ONLINE, MemorySize.ofGibibytes(1));
        VgpuSession session = session(offline, 400);
        Inputs inputs = new Inputs(256, 256)) {
      CompletableFuture<OrtSession.Result> running = inThread(session, inputs);
      await(() -> offline.usage().running() == 1);
      online.run(() -> assertThat(running).isNotDone());

      try (OrtSession.Result result = running.get()) {
        assertOnes(result, 256 * 256);
      }
      assertThat(offline.usage().preemptions()).isPositive();
    }
  }

  @Test
  void closingWaitsForTheRunInsideAndRefusesLaterOnes() throws Exception {
    try (VirtualGpu gpu = gpu(PreemptionClass.ONLINE, MemorySize.ofGibibytes(1));
        Inputs inputs = new Inputs(256, 256)) {
      VgpuSession session = session(gpu, 400);
      CompletableFuture<OrtSession.Result> running = inThread(session, inputs);
      await(() -> gpu.usage().running() == 1 || running.isDone());
      session.close();
      session.close();

      // The run was inside and completed, or came too late and failed; the JVM survives.
      try (OrtSession.Result result = running.get()) {
        assertOnes(result, 256 * 256);
      } catch (ExecutionException e) {
        assertThat(e).hasMessageContaining("closed");
      }
      assertThatThrownBy(() -> session.run(inputs.map()))
          .isInstanceOf(IllegalStateException.class)
          .hasMessageContaining("the session is closed");
      assertThat(gpu.usage().memoryReserved()).isEqualTo(MemorySize.ZERO);
    }
  }

  /** Two closers meet while a run is inside: neither waits for the other for ever. */
  @Test
  void twoThreadsCanCloseASessionAtOnce() throws Exception {
    for (int i = 0; i < 3; i++) {
      try (VirtualGpu gpu = gpu(PreemptionClass.ONLINE, MemorySize.ofGibibytes(1));
          Inputs inputs = new Inputs(256, 256)) {
        VgpuSession session = session(gpu, 400);
        CompletableFuture<OrtSession.Result> running = inThread(session, inputs);
        await(() -> gpu.usage().running() == 1 || running.isDone());
        CompletableFuture<Void> other = CompletableFuture.runAsync(session::close);
        session.close();
        other.get();
        running.thenAccept(OrtSession.Result::close).exceptionally(tooLate -> null).get();
        assertThat(gpu.usage().memoryReserved()).isEqualTo(MemorySize.ZERO);
      }
    }
  }

  @Test
  void severalSessionsShareTheQuotaOfOneVirtualGpu() throws Exception {
    try (VirtualGpu gpu = gpu(PreemptionClass.ONLINE, MemorySize.ofGibibytes(1));
        VgpuSession one = session(gpu, 1);
        VgpuSession two = session(gpu, 2);
        Inputs inputs = new Inputs(4, 4)) {
      one.warmUp(inputs.map());
      two.warmUp(inputs.map());

      assertThat(gpu.usage().calls()).isEqualTo(6);
      assertThat(one.peakMemory(inputs.map())).isPresent();
      assertThat(two.peakMemory(inputs.map())).isPresent();
    }
  }

  @Test
  void aTimeoutOfTheCallHolds() throws Exception {
    try (VirtualGpu gpu = gpu(PreemptionClass.ONLINE, MemorySize.ofGibibytes(1));
        VgpuSession session = session(gpu, 1);
        Inputs inputs = new Inputs(4, 4)) {
      session.warmUp(inputs.map());
      CountDownLatch inside = new CountDownLatch(1);
      CountDownLatch leave = new CountDownLatch(1);
      MemorySize left =
          MemorySize.ofBytes(gpu.request().memory().bytes() - gpu.usage().memoryReserved().bytes());
      var holder =
          gpu.submit(
              () -> {
                inside.countDown();
                leave.await();
                return null;
              },
              CallOptions.ofMemory(left));
      inside.await();

      assertThatThrownBy(
              () ->
                  session.run(
                      inputs.map(),
                      session.session().getOutputNames(),
                      CallOptions.ofTimeout(Duration.ofMillis(1))))
          .isInstanceOf(GpuTimeoutException.class);
      leave.countDown();
      holder.get();
    }
  }

  @Test
  void aModelThatDoesNotFitItsQuotaIsRefusedByName(@TempDir Path directory) throws Exception {
    Path file = Files.write(directory.resolve("model.onnx"), TestModel.product(50));
    try (VirtualGpu gpu = gpu(PreemptionClass.ONLINE, MemorySize.ofBytes(1000));
        OrtSession.SessionOptions options = new OrtSession.SessionOptions()) {
      assertThatThrownBy(() -> VgpuOrt.session(gpu, ENVIRONMENT, file, options))
          .isInstanceOf(GpuCapacityException.class)
          .hasMessageContaining("model.onnx")
          .hasMessageContaining("quota=1000B");
      assertThat(gpu.usage().memoryReserved()).isEqualTo(MemorySize.ZERO);
    }
  }

  @Test
  void aModelFileThatIsAbsentIsNamed(@TempDir Path directory) throws Exception {
    try (VirtualGpu gpu = gpu(PreemptionClass.ONLINE, MemorySize.ofGibibytes(1));
        OrtSession.SessionOptions options = new OrtSession.SessionOptions()) {
      assertThatThrownBy(
              () -> VgpuOrt.session(gpu, ENVIRONMENT, directory.resolve("none.onnx"), options))
          .isInstanceOf(NoSuchFileException.class)
          .hasMessageContaining("none.onnx");
    }
  }

  @Test
  void bytesThatAreNoModelLeaveNothingReserved() {
    try (VirtualGpu gpu = gpu(PreemptionClass.ONLINE, MemorySize.ofGibibytes(1));
        OrtSession.SessionOptions options = new OrtSession.SessionOptions()) {
      assertThatThrownBy(() -> VgpuOrt.session(gpu, ENVIRONMENT, new byte[] {1, 2, 3}, options))
          .isInstanceOf(OrtException.class);
      assertThat(gpu.usage().memoryReserved()).isEqualTo(MemorySize.ZERO);
    }
  }
}
