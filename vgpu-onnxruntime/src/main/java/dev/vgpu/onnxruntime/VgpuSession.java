package dev.vgpu.onnxruntime;

import static java.util.Objects.requireNonNull;

import ai.onnxruntime.OnnxTensorLike;
import ai.onnxruntime.OrtException;
import ai.onnxruntime.OrtSession;
import dev.vgpu.CallOptions;
import dev.vgpu.GpuTimeoutException;
import dev.vgpu.MemorySize;
import dev.vgpu.PreemptionClass;
import dev.vgpu.VirtualGpu;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.concurrent.Callable;
import java.util.concurrent.locks.StampedLock;
import org.jspecify.annotations.Nullable;

/**
 * An ONNX Runtime session whose runs are calls of a virtual GPU. Safe for use by several threads.
 *
 * <p>No caller states memory: the first run of each combination of input shapes has all of the
 * quota that the models leave, and its peak is measured; later ones state that peak, and run
 * together as far as they fit. Runs of an {@link PreemptionClass#OFFLINE} virtual GPU are cancelled
 * for more urgent tenants and run again; their inputs must stay open until {@code run} returns.
 */
public final class VgpuSession implements AutoCloseable {
  /** Makes the session. */
  interface Loader {
    OrtSession load() throws OrtException;
  }

  private final VirtualGpu gpu;
  private final MemoryMeter meter;
  private final OrtSession session;
  private final ModelWeights weights;

  /** In the order of the model: results are read by number. */
  private final Set<String> outputs;

  private final PeakMemory peaks = new PeakMemory();
  private final Object measuring = new Object();

  /** Read by runs that are inside; written by the close, and for ever. */
  private final StampedLock inside = new StampedLock();

  private VgpuSession(VirtualGpu gpu, MemoryMeter meter, OrtSession session, ModelWeights weights) {
    this.gpu = gpu;
    this.meter = meter;
    this.session = session;
    this.weights = weights;
    this.outputs = session.getOutputNames();
  }

  /** Loads a model in a call of its virtual GPU, with its memory reserved before. */
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

  /** {@return the session, for what it says of the model; runs on it are calls of nobody} */
  public OrtSession session() {
    return session;
  }

  /** {@return what its runs are calls of} */
  public VirtualGpu gpu() {
    return gpu;
  }

  /**
   * Runs the model; all outputs.
   *
   * @param inputs by name; not closed
   * @return the outputs; close them
   * @throws OrtException what ONNX Runtime throws
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
   * @param outputs the names of those that are wanted
   * @param options how it waits; memory that they state is taken instead of what was learnt
   * @return the outputs; close them
   * @throws OrtException what ONNX Runtime throws
   * @throws GpuTimeoutException if it could not start within its timeout
   * @throws InterruptedException if this thread is interrupted before the run starts
   * @throws IllegalStateException if the session or the virtual GPU is closed
   */
  public OrtSession.Result run(
      Map<String, ? extends OnnxTensorLike> inputs, Set<String> outputs, CallOptions options)
      throws OrtException, InterruptedException {
    requireNonNull(outputs, "outputs");
    if (inside.isWriteLocked()) {
      throw closed();
    }
    if (options.memory().bytes() > 0) {
      return runOnce(inputs, outputs, options);
    }
    Shapes shapes = Shapes.of(inputs);
    CallOptions known = peaks.find(shapes);
    if (known == null) {
      return runAndLearn(inputs, outputs, options, shapes);
    }
    return runOnce(inputs, outputs, withMemory(options, known));
  }

  private static CallOptions withMemory(CallOptions options, CallOptions known) {
    return options == CallOptions.defaults()
        ? known
        : options.toBuilder().memory(known.memory()).build();
  }

  private OrtSession.Result runOnce(
      Map<String, ? extends OnnxTensorLike> inputs, Set<String> outputs, CallOptions options)
      throws OrtException, InterruptedException {
    if (gpu.request().preemptionClass() == PreemptionClass.OFFLINE) {
      return call(new PreemptibleRun(set -> runInside(inputs, outputs, set)), options);
    }
    return call(gpu, () -> runInside(inputs, outputs, null), options);
  }

  /** The only run of its virtual GPU that has memory, so what is measured is its own. */
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
            long bytes = Math.max(meter.peakBytes(), Shapes.bytes(inputs));
            peaks.learn(shapes, Math.max(1, bytes), most);
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
    long stamp = inside.tryReadLock();
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
   * {@return what a run of these inputs states that it needs at its peak; empty if nothing of the
   * kind has run}
   *
   * @param inputs only their shapes count
   */
  public Optional<MemorySize> peakMemory(Map<String, ? extends OnnxTensorLike> inputs) {
    return Optional.ofNullable(peaks.find(Shapes.of(inputs))).map(CallOptions::memory);
  }

  /**
   * Runs the model twice and drops the results: the first run of a shape is slow and has the quota
   * alone, so it had better not be a client's. The largest shape covers those within it.
   *
   * @param inputs of the shape to come
   * @throws OrtException what ONNX Runtime throws
   * @throws InterruptedException if this thread is interrupted before a run starts
   */
  public void warmUp(Map<String, ? extends OnnxTensorLike> inputs)
      throws OrtException, InterruptedException {
    run(inputs).close();
    run(inputs).close();
  }

  /**
   * Frees the model once no run is inside; runs that wait fail when their turn comes. Blocks as
   * long as the longest run that is inside; not from within one. A second call does nothing.
   *
   * @throws IllegalStateException if ONNX Runtime does not free it
   */
  @Override
  public void close() {
    if (inside.isWriteLocked()) {
      return;
    }
    long unused = inside.writeLock(); // kept: nobody gets in any more
    try {
      session.close();
    } catch (OrtException e) {
      throw new IllegalStateException("ONNX Runtime did not close a session", e);
    } finally {
      weights.close();
    }
  }
}
