package dev.vgpu.onnxruntime;

import ai.onnxruntime.OnnxTensor;
import ai.onnxruntime.OnnxTensorLike;
import java.util.Arrays;
import java.util.Map;
import java.util.SortedMap;
import java.util.TreeMap;

/**
 * The shapes of a run's inputs, in the order of the inputs' names: for each, its rank, then its
 * dimensions. Immutable.
 */
final class Shapes {
  private final long[] values;
  private final int hash;

  private Shapes(long[] values) {
    this.values = values;
    this.hash = Arrays.hashCode(values);
  }

  static Shapes of(Map<String, ? extends OnnxTensorLike> inputs) {
    SortedMap<String, OnnxTensorLike> sorted = new TreeMap<>(inputs);
    long[][] each = new long[sorted.size()][];
    int count = 0;
    int length = 0;
    for (OnnxTensorLike input : sorted.values()) {
      each[count] = input.getInfo().getShape();
      length += 1 + each[count].length;
      count++;
    }
    long[] values = new long[length];
    int at = 0;
    for (long[] shape : each) {
      values[at++] = shape.length;
      System.arraycopy(shape, 0, values, at, shape.length);
      at += shape.length;
    }
    return new Shapes(values);
  }

  /**
   * Whether no dimension is larger than in the other run, which then needs at least as much memory.
   */
  boolean isWithin(Shapes other) {
    if (values.length != other.values.length) {
      return false;
    }
    int at = 0;
    while (at < values.length) {
      if (values[at] != other.values[at]) {
        return false; // another rank
      }
      int end = at + 1 + (int) values[at];
      for (at++; at < end; at++) {
        if (values[at] > other.values[at]) {
          return false;
        }
      }
    }
    return true;
  }

  @Override
  public boolean equals(Object other) {
    return other instanceof Shapes shapes && Arrays.equals(values, shapes.values);
  }

  @Override
  public int hashCode() {
    return hash;
  }

  @Override
  public String toString() {
    return Arrays.toString(values);
  }

  /** {@return the bytes of the tensors among the inputs, a lower bound for the run} */
  static long bytes(Map<String, ? extends OnnxTensorLike> inputs) {
    long bytes = 0;
    for (OnnxTensorLike input : inputs.values()) {
      if (input instanceof OnnxTensor tensor) {
        bytes += tensor.getInfo().getNumElements() * tensor.getInfo().type.size;
      }
    }
    return bytes;
  }
}
