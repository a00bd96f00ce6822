package dev.vgpu.bench.harness;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.LongBuffer;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.List;

/**
 * When the kernels of several programs ran, as the GPU itself noted it: where its time went while
 * it ran none of them.
 *
 * @param wallNs the time for which all programs had work
 * @param busyNs how much of it at least one kernel ran
 * @param switches how often a kernel of another program followed
 * @param switchIdleNs for how long the GPU ran none at such a place, in all
 * @param medianSwitchIdleNs the median of these times
 * @param idleNs for how long it ran none between two kernels of one program, in all
 * @param kernels the number of kernels of each program
 * @param medianKernelNs the median length of all kernels
 */
public record Timeline(
    long wallNs,
    long busyNs,
    long switches,
    long switchIdleNs,
    long medianSwitchIdleNs,
    long idleNs,
    List<Long> kernels,
    long medianKernelNs) {

  private record Kernel(int program, long beginNs, long endNs) {}

  /** Reads the files that programs wrote; each is a sequence of begin and end, as 64-bit words. */
  static Timeline read(List<Path> files) {
    List<Kernel> all = new ArrayList<>();
    long fromNs = Long.MIN_VALUE;
    long toNs = Long.MAX_VALUE;
    for (int i = 0; i < files.size(); i++) {
      List<Kernel> kernels = kernels(i, files.get(i));
      if (kernels.isEmpty()) {
        return new Timeline(0, 0, 0, 0, 0, 0, List.of(), 0);
      }
      fromNs = Math.max(fromNs, kernels.get(0).beginNs);
      toNs = Math.min(toNs, kernels.get(kernels.size() - 1).endNs);
      all.addAll(kernels);
    }
    // Without the time in which the programs start.
    long beginNs = fromNs + (toNs - fromNs) / 4;
    long endNs = toNs;
    all.removeIf(kernel -> kernel.beginNs < beginNs || kernel.endNs > endNs);
    all.sort(Comparator.comparingLong(Kernel::beginNs));
    return of(all, files.size());
  }

  private static List<Kernel> kernels(int program, Path file) {
    try {
      LongBuffer words =
          ByteBuffer.wrap(Files.readAllBytes(file)).order(ByteOrder.LITTLE_ENDIAN).asLongBuffer();
      List<Kernel> kernels = new ArrayList<>();
      while (words.remaining() >= 2) {
        Kernel kernel = new Kernel(program, words.get(), words.get());
        if (kernel.beginNs > 0 && kernel.endNs >= kernel.beginNs) {
          kernels.add(kernel);
        }
      }
      return kernels;
    } catch (IOException e) {
      throw new UncheckedIOException("cannot read the stamps in " + file, e);
    }
  }

  private static Timeline of(List<Kernel> all, int programs) {
    long[] kernels = new long[programs];
    List<Long> switchIdle = new ArrayList<>();
    List<Long> lengths = new ArrayList<>();
    long busyNs = 0;
    long idleNs = 0;
    long switches = 0;
    int beganLast = -1;
    Kernel last = null;
    for (Kernel kernel : all) {
      kernels[kernel.program]++;
      lengths.add(kernel.endNs - kernel.beginNs);
      if (last == null) {
        beganLast = kernel.program;
        last = kernel;
        busyNs += kernel.endNs - kernel.beginNs;
        continue;
      }
      long gapNs = kernel.beginNs - last.endNs;
      if (kernel.program != beganLast) {
        switches++;
        switchIdle.add(Math.max(0, gapNs));
      } else {
        idleNs += Math.max(0, gapNs);
      }
      busyNs += Math.max(0, kernel.endNs - Math.max(last.endNs, kernel.beginNs));
      beganLast = kernel.program;
      last = kernel.endNs >= last.endNs ? kernel : last;
    }
    List<Long> each = new ArrayList<>();
    for (long count : kernels) {
      each.add(count);
    }
    return new Timeline(
        last == null ? 0 : last.endNs - all.get(0).beginNs,
        busyNs,
        switches,
        switchIdle.stream().mapToLong(Long::longValue).sum(),
        median(switchIdle),
        idleNs,
        each,
        median(lengths));
  }

  private static long median(List<Long> values) {
    List<Long> sorted = values.stream().sorted().toList();
    return sorted.isEmpty() ? 0 : sorted.get(sorted.size() / 2);
  }
}
