package dev.vgpu.djl;

import ai.djl.ndarray.NDList;
import ai.djl.ndarray.types.Shape;
import dev.vgpu.CallOptions;
import dev.vgpu.MemorySize;
import dev.vgpu.VirtualGpu;
import dev.vgpu.memory.MemoryMeter;
import dev.vgpu.memory.ModelWeights;
import dev.vgpu.memory.PeakMemory;
import dev.vgpu.memory.Shapes;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.Callable;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ConcurrentSkipListMap;

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

  /** The largest known peak by the number of inputs. */
  private final ConcurrentSkipListMap<Integer, MemorySize> stated = new ConcurrentSkipListMap<>();

  private final Object measuring = new Object();

  /** The predictions that run, by their thread. */
  private final Map<Thread, Attempt> running = new ConcurrentHashMap<>();

  /** One attempt at a prediction. Confined to its thread. */
  private static final class Attempt {
    final MemorySize most;
    final boolean isMeasured;
    final List<Shapes> shapes = new ArrayList<>();
    long inputBytes;
    boolean isTooLarge;

    Attempt(MemorySize most, boolean isMeasured) {
      this.most = most;
      this.isMeasured = isMeasured;
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
    Map.Entry<Integer, MemorySize> known = stated.ceilingEntry(inputs);
    if (known != null) {
      Attempt attempt = new Attempt(known.getValue(), false);
      try {
        return gpu.call(() -> run(prediction, attempt), with(known.getValue()));
      } catch (Exception e) {
        if (!attempt.isTooLarge) {
          throw e;
        }
      }
    }
    MemorySize most = MemorySize.ofBytes(weights.leftForCalls());
    return gpu.call(() -> measured(prediction, new Attempt(most, true), inputs), with(most));
  }

  private CallOptions with(MemorySize memory) {
    return options.toBuilder().memory(memory).build();
  }

  private <T> T run(Callable<T> prediction, Attempt attempt) throws Exception {
    running.put(Thread.currentThread(), attempt);
    try {
      return prediction.call();
    } finally {
      running.remove(Thread.currentThread());
    }
  }

  /** No other call has memory meanwhile, so the measured peak is its own. */
  private <T> T measured(Callable<T> prediction, Attempt attempt, int inputs) throws Exception {
    synchronized (measuring) {
      meter.begin();
      T result = run(prediction, attempt);
      long bytes = Math.max(1, Math.max(meter.peakBytes(), attempt.inputBytes));
      for (Shapes shapes : attempt.shapes) {
        peaks.learn(shapes, bytes, attempt.most.bytes());
        CallOptions learnt = peaks.find(shapes);
        if (learnt != null) {
          stated.merge(inputs, learnt.memory(), LearntMemory::larger);
        }
      }
      return result;
    }
  }

  private static MemorySize larger(MemorySize one, MemorySize other) {
    return one.compareTo(other) < 0 ? other : one;
  }

  /**
   * Looks at what the translator gives to the engine.
   *
   * @throws IllegalStateException if its peak is not known to fit what the call states
   */
  void see(NDList arrays) {
    Attempt attempt = running.get(Thread.currentThread());
    if (attempt == null) {
      return;
    }
    Shape[] each = arrays.getShapes();
    long[][] dimensions = new long[each.length][];
    for (int i = 0; i < each.length; i++) {
      dimensions[i] = each[i].getShape();
      attempt.inputBytes += each[i].size() * arrays.get(i).getDataType().getNumOfBytes();
    }
    Shapes shapes = Shapes.of(dimensions);
    attempt.shapes.add(shapes);
    if (attempt.isMeasured) {
      return;
    }
    CallOptions known = peaks.find(shapes);
    if (known == null || known.memory().compareTo(attempt.most) > 0) {
      attempt.isTooLarge = true;
      throw new IllegalStateException("begun again: more memory than stated: " + shapes);
    }
  }
}
