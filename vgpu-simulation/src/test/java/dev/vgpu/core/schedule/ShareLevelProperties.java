package dev.vgpu.core.schedule;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.data.Offset.offset;

import dev.vgpu.request.PreemptionClass;
import dev.vgpu.request.SharePolicy;
import dev.vgpu.request.VirtualGpuRequest;
import dev.vgpu.simulation.VirtualNode;
import java.util.ArrayList;
import java.util.List;
import java.util.Random;
import net.jqwik.api.Example;
import net.jqwik.api.ForAll;
import net.jqwik.api.Property;
import net.jqwik.api.Tag;
import net.jqwik.api.constraints.IntRange;
import org.jspecify.annotations.Nullable;

/** The heaps find the same tenant as a search of all tenants, and lags sum to 0. */
@Tag("property")
class ShareLevelProperties {
  private static final SchedulerSettings SETTINGS = VirtualNode.settings(0);

  private final List<Tenant> all = new ArrayList<>();
  private final ShareLevel level = new ShareLevel(SETTINGS);

  @Property(tries = 100)
  void picksWhomALookAtAllWouldFind(@ForAll @IntRange(min = 1, max = 1_000_000) int seed) {
    Random random = new Random(seed);
    make(random);
    long nowNs = 0;
    for (int step = 0; step < 400; step++) {
      nowNs += 1 + random.nextInt(3_000_000);
      Tenant some = all.get(random.nextInt(all.size()));
      switch (random.nextInt(4)) {
        case 0 -> {
          if (some.isRunnable()) {
            level.leave(some, nowNs);
          }
        }
        case 1 -> {
          if (!some.isRunnable()) {
            level.join(some, nowNs);
          }
        }
        default -> {
          Tenant next = level.pick();
          if (next != null) {
            double sum = lagSum();
            double usedNs = 1 + random.nextInt(5_000_000);
            level.turnGiven(next, step, usedNs);
            level.charge(next, usedNs);
            level.advance(usedNs, usedNs);
            assertThat(lagSum()).isCloseTo(sum, offset(1_000.0));
          }
        }
      }
      assertThat(areAsGood(level.pick(), naivePick())).isTrue();
    }
  }

  @Example
  void aGangThatHasLeftIsForgotten() {
    TurnGate ofSeveral =
        new BusyGate() {
          @Override
          public boolean spansGpus() {
            return true;
          }
        };
    Tenant gang = new Tenant("gang", ofSeveral, fixedShare());
    level.join(gang, 0);
    level.leave(gang, 1);
    level.reset();

    level.join(new Tenant("fixed", new BusyGate(), fixedShare()), 2);
    level.passed(1_000_000, true);
    assertThat(level.isBehind()).isTrue();
  }

  private static VirtualGpuRequest fixedShare() {
    return VirtualNode.request(SharePolicy.FIXED_SHARE, 50, PreemptionClass.NEARLINE);
  }

  private void make(Random random) {
    all.clear();
    while (level.size() > 0) {
      level.leave(level.member(0), 0);
    }
    int left = 100;
    int count = 1 + random.nextInt(40);
    for (int i = 0; i < count; i++) {
      int percent = Math.min(left, random.nextInt(12));
      left -= percent;
      SharePolicy policy = random.nextBoolean() ? SharePolicy.FIXED_SHARE : SharePolicy.BURST_SHARE;
      policy = percent == 0 ? SharePolicy.BEST_EFFORT : policy;
      PreemptionClass cls =
          random.nextBoolean() ? PreemptionClass.ONLINE : PreemptionClass.NEARLINE;
      all.add(new Tenant("t" + i, new BusyGate(), VirtualNode.request(policy, percent, cls)));
    }
  }

  /** If all tenants take surplus, their lags sum to 0. */
  private double lagSum() {
    double sum = 0;
    for (int i = 0; i < level.size(); i++) {
      sum += level.lag(level.member(i));
    }
    return level.hasFixed() ? 0 : sum;
  }

  private @Nullable Tenant naivePick() {
    Tenant best = null;
    for (int i = 0; i < level.size(); i++) {
      Tenant tenant = level.member(i);
      if (best == null ? mayRun(tenant) : goesBefore(tenant, best)) {
        best = tenant;
      }
    }
    return best;
  }

  /** Whether both are the same, or equal except for rounding. */
  private boolean areAsGood(@Nullable Tenant picked, @Nullable Tenant found) {
    if (picked == null || found == null) {
      return (picked == null) == (found == null);
    }
    return isEligible(picked) == isEligible(found)
        && (!isEligible(picked) || isUrgent(picked) == isUrgent(found))
        && Math.abs(dueNs(picked) - dueNs(found)) < 1;
  }

  private boolean isEligible(Tenant tenant) {
    double rate = level.idealRate(tenant);
    return rate > 0 ? level.lag(tenant) >= -50 : level.lag(tenant) > 0;
  }

  /** Whether a tenant is online, or owed a whole turn. */
  private boolean isUrgent(Tenant tenant) {
    return tenant.preemptionClass == PreemptionClass.ONLINE
        || level.lag(tenant) >= SETTINGS.shortestTurnNs();
  }

  private boolean mayRun(Tenant tenant) {
    return isEligible(tenant) || tenant.takesSurplus();
  }

  private double dueNs(Tenant tenant) {
    double rate = level.idealRate(tenant);
    return rate > 0 ? (level.turnNs() - level.lag(tenant)) / rate : Double.MAX_VALUE;
  }

  private boolean goesBefore(Tenant tenant, Tenant other) {
    if (!mayRun(tenant) || isEligible(tenant) != isEligible(other)) {
      return isEligible(tenant);
    }
    if (isEligible(tenant) && isUrgent(tenant) != isUrgent(other)) {
      return isUrgent(tenant);
    }
    return dueNs(tenant) < dueNs(other)
        || (dueNs(tenant) == dueNs(other) && tenant.lastTurn < other.lastTurn);
  }
}
