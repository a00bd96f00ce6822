package dev.vgpu.djl;

import ai.djl.ndarray.NDArray;
import ai.djl.ndarray.NDList;
import ai.djl.ndarray.types.Shape;
import dev.vgpu.CallOptions;
import dev.vgpu.VirtualGpu;
import dev.vgpu.memory.MemoryMeter;
import dev.vgpu.memory.ModelWeights;
import dev.vgpu.memory.PeakMemory;
import dev.vgpu.memory.Shapes;
import dev.vgpu.request.MemorySize;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.Callable;
import java.util.concurrent.ConcurrentSkipListMap;
import org.jspecify.annotations.Nullable;

/**
 * Learns the peak memory of a model's predictions. What a prediction gives to the engine is known
 * only when its translator has run, inside the call. So a call states the largest peak that is
 * known for its number of inputs. If the translator then yields larger shapes than are known, the
 * prediction is begun again with all of the quota, and measured. Safe for use by several threads.
 */
final class LearntMemory {
  private static final String HOST = "host";

  private final VirtualGpu gpu;
  private final ModelWeights weights;
  private final CallOptions options;
  private final MemoryMeter meter;
  private final PeakMemory peaks = new PeakMemory();

  /** The options with the largest known peak, by the number of inputs. */
  private final ConcurrentSkipListMap<Integer, CallOptions> stated = new ConcurrentSkipListMap<>();

  private final Object measuring = new Object();

  /** The prediction that runs on this thread. */
  private final ThreadLocal<Attempt> running = ThreadLocal.withInitial(Attempt::new);

  /** An attempt at a prediction. Confined to its thread, and used for one after the other. */
  private static final class Attempt {
    boolean isRunning;
    MemorySize most = MemorySize.ZERO;

    /** Each of the shapes that the engine was given; null unless the attempt is measured. */
    @Nullable List<Shapes> measured;

    long inputBytes;
    boolean isTooLarge;

    void begin(MemorySize stated, @Nullable List<Shapes> shapes) {
      isRunning = true;
      most = stated;
      measured = shapes;
      inputBytes = 0;
      isTooLarge = false;
    }

    void end() {
      isRunning = false;
      measured = null;
    }
  }

  LearntMemory(VirtualGpu gpu, ModelWeights weights, CallOptions options) {
    this.gpu = gpu;
    this.weights = weights;
    this.options = options;
    this.meter =
        gpu.gpu().provider().equals(HOST)
            ? MemoryMeter.ofThisProcess()
            : MemoryMeter.ofAttached(gpu);
  }

  /** {@return the virtual GPU of the predictions} */
  VirtualGpu gpu() {
    return gpu;
  }

  /** {@return the result of a prediction of so many inputs, made in a call} */
  <T> T call(Callable<T> prediction, int inputs) throws Exception {
    if (options.memory().bytes() > 0) {
      return gpu.call(prediction, options);
    }
    Map.Entry<Integer, CallOptions> known = stated.ceilingEntry(inputs);
    if (known != null) {
      CallOptions peak = known.getValue();
      Attempt attempt = running.get();
      attempt.isTooLarge = false; // it may not begin
      try {
        return gpu.call(() -> run(prediction, peak.memory(), null), peak);
      } catch (Exception e) {
        if (!attempt.isTooLarge) {
          throw e;
        }
      }
    }
    MemorySize most = MemorySize.ofBytes(weights.leftForCalls());
    return gpu.call(() -> measured(prediction, most, inputs), with(most));
  }

  private CallOptions with(MemorySize memory) {
    return options.toBuilder().memory(memory).build();
  }

  private <T> T run(Callable<T> prediction, MemorySize most, @Nullable List<Shapes> measured)
      throws Exception {
    Attempt attempt = running.get();
    attempt.begin(most, measured);
    try {
      return prediction.call();
    } finally {
      attempt.end();
    }
  }

  /** No other call has memory meanwhile, so the measured peak is its own. */
  private <T> T measured(Callable<T> prediction, MemorySize most, int inputs) throws Exception {
    synchronized (measuring) {
      List<Shapes> seen = new ArrayList<>();
      meter.begin();
      T result = run(prediction, most, seen);
      long peak = meter.peakBytes();
      if (peak < 0) {
        return result;
      }
      long bytes = Math.max(1, Math.max(peak, running.get().inputBytes));
      for (Shapes shapes : seen) {
        peaks.learn(shapes, bytes, most.bytes());
        MemorySize learnt = peaks.find(shapes);
        if (learnt != null) {
          stated.merge(inputs, with(learnt), LearntMemory::larger);
        }
      }
      return result;
    }
  }

  private static CallOptions larger(CallOptions one, CallOptions other) {
    return one.memory().compareTo(other.memory()) < 0 ? other : one;
  }

  /**
   * Looks at what the translator gives to the engine.
   *
   * @throws IllegalStateException if its peak is not known to fit what the call states
   */
  void see(NDList arrays) {
    Attempt attempt = running.get();
    if (!attempt.isRunning) {
      return;
    }
    Shapes shapes = Shapes.ofThisThread();
    for (int i = 0; i < arrays.size(); i++) {
      NDArray array = arrays.get(i);
      Shape shape = array.getShape();
      shapes.add(shape.getShape());
      attempt.inputBytes += shape.size() * array.getDataType().getNumOfBytes();
    }
    if (attempt.measured != null) {
      attempt.measured.add(shapes.kept());
      return;
    }
    MemorySize known = peaks.find(shapes);
    if (known == null || known.compareTo(attempt.most) > 0) {
      attempt.isTooLarge = true;
      throw new IllegalStateException("begun again: more memory than stated: " + shapes);
    }
  }
}
