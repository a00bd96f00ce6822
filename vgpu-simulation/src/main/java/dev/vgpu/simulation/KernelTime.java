package dev.vgpu.simulation;

import java.util.List;

/** How long kernels run. */
public sealed interface KernelTime {
  /**
   * {@return the length of one kernel, in nanoseconds; above 0}
   *
   * @param draws the source of randomness
   */
  long drawNs(Draws draws);

  /** {@return the mean length, in nanoseconds} */
  double meanNs();

  /**
   * All the same.
   *
   * @param ns the length; above 0
   */
  record Fixed(long ns) implements KernelTime {
    @Override
    public long drawNs(Draws draws) {
      return ns;
    }

    @Override
    public double meanNs() {
      return ns;
    }
  }

  /**
   * Uniformly distributed.
   *
   * @param fromNs the shortest; above 0
   * @param toNs the longest
   */
  record Uniform(long fromNs, long toNs) implements KernelTime {
    @Override
    public long drawNs(Draws draws) {
      return draws.between(fromNs, toNs);
    }

    @Override
    public double meanNs() {
      return (fromNs + toNs) / 2.0;
    }
  }

  /**
   * Log-normally distributed.
   *
   * @param medianNs the median; above 0
   * @param sigma the standard deviation of the logarithm
   * @param mostNs longer kernels are cut to this length
   */
  record LogNormal(long medianNs, double sigma, long mostNs) implements KernelTime {
    @Override
    public long drawNs(Draws draws) {
      double ns = medianNs * StrictMath.exp(sigma * draws.normal());
      return Math.max(1, (long) Math.min((double) mostNs, ns));
    }

    /** Ignores the cut. */
    @Override
    public double meanNs() {
      return medianNs * StrictMath.exp(sigma * sigma / 2);
    }
  }

  /**
   * A mixture.
   *
   * @param parts at least one
   */
  record Mixed(List<Part> parts) implements KernelTime {
    /** Copies the list. */
    public Mixed {
      parts = List.copyOf(parts);
    }

    private double sum() {
      return parts.stream().mapToDouble(Part::weight).sum();
    }

    @Override
    public long drawNs(Draws draws) {
      double at = draws.uniform() * sum();
      for (Part part : parts) {
        at -= part.weight();
        if (at < 0) {
          return part.time().drawNs(draws);
        }
      }
      return parts.get(parts.size() - 1).time().drawNs(draws);
    }

    @Override
    public double meanNs() {
      return parts.stream().mapToDouble(part -> part.weight() * part.time().meanNs()).sum() / sum();
    }
  }

  /**
   * One component of a mixture.
   *
   * @param weight its frequency relative to the others; above 0
   * @param time its length
   */
  record Part(double weight, KernelTime time) {}
}
