package dev.vgpu.samples.onnx;

import ai.onnxruntime.OnnxTensor;
import ai.onnxruntime.OrtEnvironment;
import ai.onnxruntime.OrtException;
import ai.onnxruntime.OrtSession;
import dev.vgpu.GpuPool;
import dev.vgpu.GpuPoolOptions;
import dev.vgpu.VirtualGpu;
import dev.vgpu.onnxruntime.VgpuOrt;
import dev.vgpu.onnxruntime.VgpuSession;
import dev.vgpu.request.MemorySize;
import dev.vgpu.request.VirtualGpuRequest;
import java.io.IOException;
import java.nio.FloatBuffer;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionException;

/**
 * Two sessions in one JVM with runs from changing threads, as in onnxruntime issue 29351, where
 * each session's memory on the GPU grows with every run. {@code plain} runs them as plain ONNX
 * Runtime sessions, {@code vgpu} each under its own virtual GPU. Prints the memory that the process
 * holds after each round.
 *
 * <p>On a CPU nothing grows without bound. But a plain session keeps the largest amount that any of
 * its runs took, and a session under a virtual GPU gives it back.
 */
public final class TwoSessions {
  private static final int WIDTH = 16;
  private static final int HIDDEN = 1024;

  /** Rows per run in each round; the largest takes 128 MiB between the layers. */
  private static final List<Integer> ROUNDS = List.of(64, 32_768, 64, 64);

  private static final OrtEnvironment ENVIRONMENT = OrtEnvironment.getEnvironment();

  private TwoSessions() {}

  /** One run of a session. */
  interface Runs {
    OrtSession.Result run(Map<String, OnnxTensor> inputs) throws OrtException, InterruptedException;
  }

  /**
   * Runs it.
   *
   * @param args {@code plain} or {@code vgpu}
   * @throws Exception if a model cannot be run
   */
  public static void main(String[] args) throws Exception {
    String how = args.length == 1 ? args[0] : "";
    byte[] model = SampleModel.of(WIDTH, HIDDEN, 2);
    switch (how) {
      case "plain" -> plain(model);
      case "vgpu" -> underVirtualGpus(model);
      default -> System.err.println("usage: TwoSessions plain|vgpu");
    }
  }

  private static void plain(byte[] model) throws Exception {
    try (OrtSession.SessionOptions options = new OrtSession.SessionOptions();
        OrtSession one = ENVIRONMENT.createSession(model, options);
        OrtSession two = ENVIRONMENT.createSession(model, options)) {
      rounds(one::run, two::run);
    }
  }

  private static void underVirtualGpus(byte[] model) throws Exception {
    GpuPoolOptions alone = GpuPoolOptions.builder().scope(GpuPoolOptions.Scope.THIS_JVM).build();
    // #region sessions
    try (GpuPool pool = GpuPool.open(alone);
        VirtualGpu first = pool.acquire(request("first"));
        VirtualGpu second = pool.acquire(request("second"));
        OrtSession.SessionOptions options = new OrtSession.SessionOptions();
        OrtSession.SessionOptions others = new OrtSession.SessionOptions();
        VgpuSession one = VgpuOrt.session(first, ENVIRONMENT, model, options);
        VgpuSession two = VgpuOrt.session(second, ENVIRONMENT, model, others)) {
      rounds(one::run, two::run);
    }
    // #endregion sessions
  }

  private static VirtualGpuRequest request(String name) {
    return VirtualGpuRequest.builder().name(name).memory(MemorySize.ofMebibytes(768)).build();
  }

  private static void rounds(Runs one, Runs two) throws Exception {
    long before = heldMebibytes();
    for (int rows : ROUNDS) {
      runInNewThread(one, rows);
      runInNewThread(two, rows);
      System.out.println("rows=" + rows + " heldMiB=" + (heldMebibytes() - before));
    }
  }

  private static void runInNewThread(Runs session, int rows) throws InterruptedException {
    CompletableFuture<Void> result = new CompletableFuture<>();
    Thread thread =
        new Thread(
            () -> {
              try (OnnxTensor input = zeros(rows)) {
                session.run(Map.of(SampleModel.INPUT, input)).close();
                result.complete(null);
              } catch (OrtException | InterruptedException | RuntimeException e) {
                result.completeExceptionally(e);
              }
            });
    thread.start();
    thread.join();
    if (result.isCompletedExceptionally()) {
      throw new CompletionException(result.handle((unused, e) -> e).join());
    }
  }

  private static OnnxTensor zeros(int rows) throws OrtException {
    return OnnxTensor.createTensor(
        ENVIRONMENT, FloatBuffer.allocate(rows * WIDTH), new long[] {rows, WIDTH});
  }

  /** {@return the resident memory of this process, read from Linux} */
  private static long heldMebibytes() throws IOException {
    for (String line : Files.readAllLines(Path.of("/proc/self/status"))) {
      if (line.startsWith("RssAnon:")) {
        return Long.parseLong(line.replaceAll("[^0-9]", "")) / 1024;
      }
    }
    throw new IOException("/proc/self/status tells no RssAnon");
  }
}
