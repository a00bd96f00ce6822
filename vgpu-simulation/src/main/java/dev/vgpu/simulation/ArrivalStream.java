package dev.vgpu.simulation;

import static dev.vgpu.simulation.Workload.NEVER;

import java.util.ArrayDeque;
import java.util.Queue;

/** The arrivals of one tenant, in order. Not thread-safe. */
abstract class ArrivalStream {
  /** {@return when the next request arrives; {@link Workload#NEVER} if none does} */
  abstract long nextNs();

  /** {@return the number of kernels of the next request, which this removes; 0 means as usual} */
  abstract int take();

  /** Records that a request was answered and its client has the answer. */
  void answered(long nowNs) {}

  static ArrivalStream of(Arrivals arrivals, long joinNs, Draws draws) {
    if (arrivals instanceof Arrivals.ClosedLoop loop) {
      return new Clients(loop, joinNs);
    } else if (arrivals instanceof Arrivals.Poisson poisson) {
      return new Random(poisson, joinNs, draws);
    } else if (arrivals instanceof Arrivals.Bursts bursts) {
      return new Even(bursts, joinNs);
    } else {
      return new Replayed((Arrivals.Recorded) arrivals, joinNs);
    }
  }

  private static final class Clients extends ArrivalStream {
    private final Queue<Long> thinking = new ArrayDeque<>();
    private final long thinkNs;

    Clients(Arrivals.ClosedLoop loop, long joinNs) {
      this.thinkNs = loop.thinkNs();
      for (int i = 0; i < loop.clients(); i++) {
        thinking.add(joinNs);
      }
    }

    @Override
    long nextNs() {
      Long next = thinking.peek();
      return next == null ? NEVER : next;
    }

    @Override
    int take() {
      thinking.remove();
      return 0;
    }

    @Override
    void answered(long nowNs) {
      thinking.add(nowNs + thinkNs);
    }
  }

  private static final class Random extends ArrivalStream {
    private final double meanNs;
    private final Draws draws;
    private long nextNs;

    Random(Arrivals.Poisson poisson, long joinNs, Draws draws) {
      this.meanNs = 1e9 / poisson.perSecond();
      this.draws = draws;
      this.nextNs = joinNs;
      step();
    }

    private void step() {
      nextNs += (long) (meanNs * draws.exponential());
    }

    @Override
    long nextNs() {
      return nextNs;
    }

    @Override
    int take() {
      step();
      return 0;
    }
  }

  private static final class Even extends ArrivalStream {
    private final Arrivals.Bursts bursts;
    private long burstNs;
    private int index;

    Even(Arrivals.Bursts bursts, long joinNs) {
      this.bursts = bursts;
      this.burstNs = joinNs + bursts.offsetNs();
    }

    @Override
    long nextNs() {
      return burstNs + index * bursts.spacingNs();
    }

    @Override
    int take() {
      index++;
      if (index == bursts.size()) {
        index = 0;
        burstNs += bursts.everyNs();
      }
      return 0;
    }
  }

  private static final class Replayed extends ArrivalStream {
    private final Arrivals.Recorded trace;
    private long beginNs;
    private int index;

    Replayed(Arrivals.Recorded trace, long joinNs) {
      this.trace = trace;
      this.beginNs = joinNs;
    }

    @Override
    long nextNs() {
      return index < trace.requests().size() ? beginNs + trace.requests().get(index).atNs() : NEVER;
    }

    @Override
    int take() {
      int kernels = trace.requests().get(index).kernels();
      index++;
      if (index == trace.requests().size() && trace.lengthNs() > 0) {
        index = 0;
        beginNs += trace.lengthNs();
      }
      return kernels;
    }
  }
}
