package dev.vgpu.simulation;

import java.util.ArrayDeque;
import org.jspecify.annotations.Nullable;

/** Requests that are served in order of arrival, each a chain of kernels. Not thread-safe. */
final class RequestWork implements Workload {
  /** One request. The lengths of its kernels are drawn at once, or one by one. */
  private static final class Request {
    final long arrivalNs;
    final long @Nullable [] kernelNs;
    int toTake;
    int toEnd;

    Request(long arrivalNs, int kernels, long @Nullable [] kernelNs) {
      this.arrivalNs = arrivalNs;
      this.kernelNs = kernelNs;
      this.toTake = kernels;
      this.toEnd = kernels;
    }
  }

  private final ArrivalStream arrivals;
  private final RequestShape shape;
  private final boolean endless;
  private final Draws draws;
  private final LatencyHistogram latencies = new LatencyHistogram();

  /** Requests of which a kernel was taken and not all have ended, in order. */
  private final ArrayDeque<Request> begun = new ArrayDeque<>();

  private final ArrayDeque<Request> queued = new ArrayDeque<>();

  /** The request whose kernels are being taken. */
  private @Nullable Request current;

  /** Kernels that were taken and have not ended. */
  private int outstanding;

  private int sinceSync;
  private long cancelledNs;
  private long arrived;
  private long answered;
  private long kernels;
  private long clockNs;

  RequestWork(Arrivals arrivals, RequestShape shape, long joinNs, long seed, String name) {
    this.draws = new Draws(seed, name);
    this.arrivals = ArrivalStream.of(arrivals, joinNs, new Draws(seed, name + "/arrivals"));
    this.shape = shape;
    this.endless = arrivals instanceof Arrivals.ClosedLoop loop && loop.thinkNs() == 0;
  }

  /** Whether there is always more work: a request arrives as soon as one is answered. */
  boolean isEndless() {
    return endless;
  }

  LatencyHistogram latencies() {
    return latencies;
  }

  long arrived() {
    return arrived;
  }

  long answered() {
    return answered;
  }

  long kernels() {
    return kernels;
  }

  /** Discards what was counted until now. */
  void startCounting() {
    latencies.clear();
    arrived = (long) queued.size() + begun.size();
    answered = 0;
    kernels = 0;
  }

  @Override
  public long nextArrivalNs() {
    return arrivals.nextNs();
  }

  @Override
  public long arrive(long nowNs) {
    clockNs = nowNs;
    long workNs = 0;
    while (arrivals.nextNs() <= nowNs) {
      long atNs = arrivals.nextNs();
      int count = arrivals.take();
      if (count == 0) {
        count = (int) draws.between(shape.leastKernels(), shape.mostKernels());
      }
      long[] kernelNs = null;
      if (!endless) {
        kernelNs = new long[count];
        for (int i = 0; i < count; i++) {
          kernelNs[i] = shape.kernelTime().drawNs(draws);
          workNs += kernelNs[i];
        }
      }
      queued.add(new Request(atNs, count, kernelNs));
      arrived++;
    }
    return workNs;
  }

  @Override
  public boolean hasKernel() {
    if (shape.sync() == 0) {
      if (endless && current == null && queued.isEmpty()) {
        long ignored = arrive(clockNs); // A program that never waits continues at once.
      }
    } else if (outstanding > 0 && (sinceSync >= shape.sync() || current == null)) {
      return false;
    }
    return current != null || !queued.isEmpty();
  }

  @Override
  public long takeKernel() {
    Request from = current;
    if (from == null) {
      from = queued.remove();
      begun.add(from);
    }
    from.toTake--;
    current = from.toTake == 0 ? null : from;
    if (current == null && shape.sync() == 0) {
      arrivals.answered(clockNs);
    }
    outstanding++;
    sinceSync++;
    if (from.kernelNs != null) {
      return from.kernelNs[from.kernelNs.length - from.toTake - 1];
    }
    long again = cancelledNs;
    cancelledNs = 0;
    return again > 0 ? again : shape.kernelTime().drawNs(draws);
  }

  @Override
  public long kernelEnded(long nowNs) {
    clockNs = nowNs;
    outstanding--;
    kernels++;
    Request first = begun.element();
    first.toEnd--;
    if (first.toEnd == 0) {
      begun.remove();
      answered++;
      latencies.add(nowNs - first.arrivalNs);
    }
    boolean over = first.toEnd == 0 || sinceSync >= shape.sync();
    if (shape.sync() == 0 || outstanding > 0 || !over) {
      return 0;
    }
    sinceSync = 0;
    if (first.toEnd == 0) {
      arrivals.answered(nowNs + shape.hostNs());
    }
    return shape.hostNs();
  }

  @Override
  public void cancelled(long kernelNs) {
    outstanding--;
    sinceSync--;
    Request first = begun.element();
    first.toTake++;
    current = first;
    cancelledNs = kernelNs;
  }
}
