package dev.vgpu.bench.fairness;

import dev.vgpu.request.SharePolicy;
import java.util.ArrayList;
import java.util.List;

/**
 * Tenants that all have work all the time. Immutable.
 *
 * @param name describes them
 * @param tenants two or more
 */
record Mix(String name, List<Tenant> tenants) {
  private static final int ALL_PERCENT = 100;

  /** Copies the list. */
  Mix {
    tenants = List.copyOf(tenants);
  }

  /** The guarantee of a tenant. */
  record Tenant(SharePolicy policy, int percent) {
    String word() {
      return switch (policy) {
        case FIXED_SHARE -> "fixed " + percent;
        case BURST_SHARE -> "burst " + percent;
        case BEST_EFFORT -> "best effort";
      };
    }
  }

  /** {@return the mixes of the benchmark, with 2 to 16 tenants} */
  static List<Mix> all() {
    Tenant free = new Tenant(SharePolicy.BEST_EFFORT, 0);
    return List.of(
        new Mix("2: burst 75/25", List.of(burst(75), burst(25))),
        new Mix("2: best effort", List.of(free, free)),
        new Mix("3: fixed 50, burst 30, free", List.of(fixed(50), burst(30), free)),
        new Mix("4: burst 40/30/20/10", List.of(burst(40), burst(30), burst(20), burst(10))),
        new Mix(
            "8: 2 fixed, 3 burst, 3 free",
            List.of(fixed(20), fixed(10), burst(20), burst(10), burst(5), free, free, free)),
        new Mix("16: 4 fixed, 4 burst, 8 free", sixteen()));
  }

  private static List<Tenant> sixteen() {
    List<Tenant> tenants = new ArrayList<>();
    for (int i = 0; i < 4; i++) {
      tenants.add(fixed(5));
      tenants.add(burst(5));
      tenants.add(new Tenant(SharePolicy.BEST_EFFORT, 0));
      tenants.add(new Tenant(SharePolicy.BEST_EFFORT, 0));
    }
    return tenants;
  }

  private static Tenant burst(int percent) {
    return new Tenant(SharePolicy.BURST_SHARE, percent);
  }

  private static Tenant fixed(int percent) {
    return new Tenant(SharePolicy.FIXED_SHARE, percent);
  }

  /**
   * {@return what a tenant is entitled to while all have work, in percent of the GPU: its share
   * and, unless the share is fixed, an equal part of what no share guarantees}
   */
  double entitledPercent(int index) {
    int promised = tenants.stream().mapToInt(Tenant::percent).sum();
    long takers = tenants.stream().filter(t -> t.policy() != SharePolicy.FIXED_SHARE).count();
    Tenant tenant = tenants.get(index);
    double surplus =
        tenant.policy() == SharePolicy.FIXED_SHARE ? 0 : (double) (ALL_PERCENT - promised) / takers;
    return tenant.percent() + surplus;
  }
}
