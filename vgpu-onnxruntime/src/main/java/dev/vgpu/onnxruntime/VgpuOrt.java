package dev.vgpu.onnxruntime;

import static java.util.Objects.requireNonNull;

import ai.onnxruntime.OrtEnvironment;
import ai.onnxruntime.OrtException;
import ai.onnxruntime.OrtProvider;
import ai.onnxruntime.OrtSession;
import ai.onnxruntime.providers.OrtCUDAProviderOptions;
import dev.vgpu.GpuCapacityException;
import dev.vgpu.VirtualGpu;
import dev.vgpu.memory.MemoryMeter;
import dev.vgpu.request.MemorySize;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.NoSuchFileException;
import java.nio.file.Path;

/**
 * Opens ONNX Runtime sessions under a virtual GPU. Several sessions may use one virtual GPU: they
 * share its turns and its quota. The same code works for CPU and CUDA. Safe for use by several
 * threads.
 *
 * <p>For CUDA, call {@link VirtualGpu#attachThisJvm()} before the first session: then the quota is
 * exact. Otherwise nothing counts the sessions' memory: each run that states none has all of the
 * quota that the models leave, so such runs of one virtual GPU do not overlap.
 */
public final class VgpuOrt {
  /** The provider of the device that stands for this machine's CPU. */
  private static final String HOST = "host";

  private VgpuOrt() {}

  /**
   * Loads a model from a file and opens a session under a virtual GPU.
   *
   * @param gpu the virtual GPU of the session's runs; not closed with the session
   * @param environment the environment of this JVM
   * @param model the file
   * @param options the session's options, to which {@link #configure} is applied; not closed
   * @return the session
   * @throws NoSuchFileException if there is no such file
   * @throws GpuCapacityException if the model does not fit what is left of the quota
   * @throws OrtException if ONNX Runtime does not load it
   * @throws IOException if the file cannot be read
   * @throws InterruptedException if this thread is interrupted while it waits for its turn
   */
  public static VgpuSession session(
      VirtualGpu gpu, OrtEnvironment environment, Path model, OrtSession.SessionOptions options)
      throws IOException, OrtException, InterruptedException {
    if (!Files.isRegularFile(requireNonNull(model, "model"))) {
      throw new NoSuchFileException(model.toString(), null, "no model file is there");
    }
    return open(
        gpu,
        Files.size(model),
        options,
        () -> environment.createSession(model.toString(), options),
        model.toString());
  }

  /**
   * Loads a model from memory and opens a session under a virtual GPU.
   *
   * @param gpu the virtual GPU of the session's runs; not closed with the session
   * @param environment the environment of this JVM
   * @param model the model's bytes; not kept
   * @param options the session's options, to which {@link #configure} is applied; not closed
   * @return the session
   * @throws GpuCapacityException if the model does not fit what is left of the quota
   * @throws OrtException if ONNX Runtime does not load it
   * @throws InterruptedException if this thread is interrupted while it waits for its turn
   */
  public static VgpuSession session(
      VirtualGpu gpu, OrtEnvironment environment, byte[] model, OrtSession.SessionOptions options)
      throws OrtException, InterruptedException {
    requireNonNull(model, "model");
    return open(
        gpu, model.length, options, () -> environment.createSession(model, options), "of bytes");
  }

  private static VgpuSession open(
      VirtualGpu gpu,
      long modelBytes,
      OrtSession.SessionOptions options,
      VgpuSession.Loader loader,
      String what)
      throws OrtException, InterruptedException {
    configure(requireNonNull(gpu, "gpu"), requireNonNull(options, "options"));
    MemoryMeter meter = usesCuda(gpu) ? MemoryMeter.ofAttached(gpu) : MemoryMeter.ofThisProcess();
    return VgpuSession.load(gpu, meter, Math.max(1, modelBytes), loader, what);
  }

  /**
   * Sets the options that keep a session within a virtual GPU's quota. Memory patterns, which keep
   * memory for each shape, are off. If CUDA is available and the virtual GPU is on a GPU, it adds
   * the CUDA provider with an arena that grows only by the requested size, up to what is free of
   * the quota now. If the virtual GPU is on the CPU, the arena is off, so that a run frees the
   * memory that it took.
   *
   * @param gpu the virtual GPU whose quota applies
   * @param options the options to change; they must not have the CUDA provider yet
   * @throws OrtException if ONNX Runtime refuses an option
   */
  public static void configure(VirtualGpu gpu, OrtSession.SessionOptions options)
      throws OrtException {
    options.setMemoryPatternOptimization(false);
    if (!usesCuda(gpu)) {
      options.setCPUArenaAllocator(false);
      return;
    }
    MemorySize quota = gpu.request().memory();
    long free = quota.bytes() - gpu.usage().memoryReserved().bytes();
    try (OrtCUDAProviderOptions cuda = new OrtCUDAProviderOptions()) {
      cuda.add("gpu_mem_limit", Long.toString(Math.max(1, free)));
      cuda.add("arena_extend_strategy", "kSameAsRequested");
      options.addCUDA(cuda);
    }
  }

  private static boolean usesCuda(VirtualGpu gpu) {
    return !gpu.gpu().provider().equals(HOST)
        && OrtEnvironment.getAvailableProviders().contains(OrtProvider.CUDA);
  }
}
