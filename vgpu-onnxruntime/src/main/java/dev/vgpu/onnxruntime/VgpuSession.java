package dev.vgpu.onnxruntime;

import static java.util.Objects.requireNonNull;

import ai.onnxruntime.OnnxTensorLike;
import ai.onnxruntime.OrtException;
import ai.onnxruntime.OrtSession;
import dev.vgpu.CallOptions;
import dev.vgpu.GpuTimeoutException;
import dev.vgpu.VirtualGpu;
import dev.vgpu.memory.MemoryMeter;
import dev.vgpu.memory.ModelWeights;
import dev.vgpu.memory.PeakMemory;
import dev.vgpu.memory.Shapes;
import dev.vgpu.request.MemorySize;
import dev.vgpu.request.PreemptionClass;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.concurrent.Callable;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.locks.StampedLock;
import org.jspecify.annotations.Nullable;

/**
 * An ONNX Runtime session whose runs are calls of a virtual GPU. Safe for use by several threads.
 *
 * <p>Callers need not state memory. The first run of each combination of input shapes gets all of
 * the quota that the models leave, and its peak is measured. Later runs state that peak, and run
 * concurrently as far as they fit. Runs of an {@link PreemptionClass#OFFLINE} virtual GPU are
 * cancelled for more urgent tenants and repeated; their inputs must stay open until {@code run}
 * returns.
 */
public final class VgpuSession implements AutoCloseable {
  /** Creates the session. */
  interface Loader {
    OrtSession load() throws OrtException;
  }

  private final VirtualGpu gpu;
  private final MemoryMeter meter;
  private final OrtSession session;
  private final ModelWeights weights;

  /** In the order of the model, because results are read by index. */
  private final Set<String> outputs;

  private final String[] inputNames;
  private final PeakMemory peaks = new PeakMemory();
  private final Object measuring = new Object();

  /** Read-locked by each run. {@link #close} takes the write lock and keeps it for ever. */
  private final StampedLock inside = new StampedLock();

  /** From here on, no run begins: runs that overlap would keep the write lock from being had. */
  private final AtomicBoolean closing = new AtomicBoolean();

  private VgpuSession(VirtualGpu gpu, MemoryMeter meter, OrtSession session, ModelWeights weights) {
    this.gpu = gpu;
    this.meter = meter;
    this.session = session;
    this.weights = weights;
    this.outputs = session.getOutputNames();
    this.inputNames = session.getInputNames().toArray(new String[0]);
  }

  /** Loads a model in a call of its virtual GPU, after reserving its memory. */
  static VgpuSession load(
      VirtualGpu gpu, MemoryMeter meter, long modelBytes, Loader loader, String what)
      throws OrtException, InterruptedException {
    ModelWeights weights = new ModelWeights(gpu, what);
    try {
      weights.reserve(modelBytes);
      OrtSession session = call(gpu, () -> measured(meter, loader), CallOptions.defaults());
      try {
        long more = meter.peakBytes() - modelBytes;
        if (more > 0) {
          weights.reserve(more);
        }
        meter.loaded();
      } catch (RuntimeException e) {
        session.close();
        throw e;
      }
      return new VgpuSession(gpu, meter, session, weights);
    } catch (Throwable e) {
      weights.close();
      throw e;
    }
  }

  private static OrtSession measured(MemoryMeter meter, Loader loader) throws OrtException {
    meter.begin();
    return loader.load();
  }

  /** {@return the session, to query the model; runs on it bypass the virtual GPU} */
  public OrtSession session() {
    return session;
  }

  /** {@return the virtual GPU of its runs} */
  public VirtualGpu gpu() {
    return gpu;
  }

  /**
   * Runs the model and returns all outputs.
   *
   * @param inputs by name; not closed
   * @return the outputs; close them
   * @throws OrtException if ONNX Runtime throws it
   * @throws InterruptedException if this thread is interrupted before the run starts
   * @throws IllegalStateException if the session or the virtual GPU is closed
   */
  public OrtSession.Result run(Map<String, ? extends OnnxTensorLike> inputs)
      throws OrtException, InterruptedException {
    return run(inputs, outputs, CallOptions.defaults());
  }

  /**
   * Runs the model.
   *
   * @param inputs by name; not closed
   * @param outputs the names of the requested outputs
   * @param options how it waits; memory stated here overrides what was learnt
   * @return the outputs; close them
   * @throws OrtException if ONNX Runtime throws it
   * @throws GpuTimeoutException if it could not start within its timeout
   * @throws InterruptedException if this thread is interrupted before the run starts
   * @throws IllegalStateException if the session or the virtual GPU is closed
   */
  public OrtSession.Result run(
      Map<String, ? extends OnnxTensorLike> inputs, Set<String> outputs, CallOptions options)
      throws OrtException, InterruptedException {
    requireNonNull(outputs, "outputs");
    if (closing.get()) {
      throw closed();
    }
    if (options.memory().bytes() > 0) {
      return runOnce(inputs, outputs, options);
    }
    Shapes shapes = Tensors.shapes(inputs, inputNames);
    CallOptions known = peaks.find(shapes, options);
    if (known == null) {
      return runAndLearn(inputs, outputs, options, shapes.kept());
    }
    return runOnce(inputs, outputs, known);
  }

  private OrtSession.Result runOnce(
      Map<String, ? extends OnnxTensorLike> inputs, Set<String> outputs, CallOptions options)
      throws OrtException, InterruptedException {
    if (gpu.request().preemptionClass() == PreemptionClass.OFFLINE) {
      return call(new PreemptibleRun(set -> runInside(inputs, outputs, set)), options);
    }
    return call(gpu, () -> runInside(inputs, outputs, null), options);
  }

  /** Runs while no other run of its virtual GPU has memory, so the measured peak is its own. */
  private OrtSession.Result runAndLearn(
      Map<String, ? extends OnnxTensorLike> inputs,
      Set<String> outputs,
      CallOptions options,
      Shapes shapes)
      throws OrtException, InterruptedException {
    long most = weights.leftForCalls();
    CallOptions alone = options.toBuilder().memory(MemorySize.ofBytes(most)).build();
    PreemptibleRun.Attempt measured =
        set -> {
          synchronized (measuring) {
            meter.begin();
            OrtSession.Result result = runInside(inputs, outputs, set);
            long peak = meter.peakBytes();
            if (peak >= 0) {
              peaks.learn(shapes, Math.max(1, Math.max(peak, Tensors.bytes(inputs))), most);
            }
            return result;
          }
        };
    if (gpu.request().preemptionClass() == PreemptionClass.OFFLINE) {
      return call(new PreemptibleRun(measured), alone);
    }
    return call(gpu, () -> measured.run(null), alone);
  }

  private OrtSession.Result runInside(
      Map<String, ? extends OnnxTensorLike> inputs,
      Set<String> outputs,
      OrtSession.@Nullable RunOptions options)
      throws OrtException {
    long stamp = closing.get() ? 0 : inside.tryReadLock();
    if (stamp == 0) {
      throw closed();
    }
    try {
      return options == null ? session.run(inputs, outputs) : session.run(inputs, outputs, options);
    } finally {
      inside.unlockRead(stamp);
    }
  }

  private IllegalStateException closed() {
    return new IllegalStateException("the session is closed: virtualGpu=" + gpu.id());
  }

  private OrtSession.Result call(PreemptibleRun run, CallOptions options)
      throws OrtException, InterruptedException {
    try {
      return gpu.call(run, options);
    } catch (Exception e) {
      throw rethrow(e);
    }
  }

  private static <T> T call(VirtualGpu gpu, Callable<T> work, CallOptions options)
      throws OrtException, InterruptedException {
    try {
      return gpu.call(work, options);
    } catch (Exception e) {
      throw rethrow(e);
    }
  }

  private static RuntimeException rethrow(Exception e) throws OrtException, InterruptedException {
    if (e instanceof OrtException known) {
      throw known;
    }
    if (e instanceof InterruptedException known) {
      throw known;
    }
    return e instanceof RuntimeException known ? known : new IllegalStateException(e);
  }

  /**
   * {@return the peak memory that a run of these inputs states; empty if no such shapes have run}
   *
   * @param inputs only their shapes count
   */
  public Optional<MemorySize> peakMemory(Map<String, ? extends OnnxTensorLike> inputs) {
    return Optional.ofNullable(peaks.find(Tensors.shapes(inputs, inputNames)));
  }

  /**
   * Runs the model twice and drops the results. The first run of a shape is slow and has the whole
   * quota, so it should not be a client's. The largest shape covers all shapes within it.
   *
   * @param inputs of the expected shape
   * @throws OrtException if ONNX Runtime throws it
   * @throws InterruptedException if this thread is interrupted before a run starts
   */
  public void warmUp(Map<String, ? extends OnnxTensorLike> inputs)
      throws OrtException, InterruptedException {
    run(inputs).close();
    run(inputs).close();
  }

  /**
   * Frees the model once no run is inside; waiting runs fail when their turn comes. Blocks until
   * the longest run inside has ended; must not be called from within a run. A second call does
   * nothing.
   *
   * @throws IllegalStateException if ONNX Runtime does not free it
   */
  @Override
  public void close() {
    if (closing.getAndSet(true)) {
      return; // not by the lock: a second writer would wait for ever
    }
    long unused = inside.writeLock(); // kept locked: no run can enter any more
    try {
      session.close();
    } catch (OrtException e) {
      throw new IllegalStateException("ONNX Runtime did not close a session", e);
    } finally {
      weights.close();
    }
  }
}
