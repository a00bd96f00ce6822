package dev.vgpu.bench.turns;

import dev.vgpu.GpuSettings;
import dev.vgpu.core.schedule.SchedulerSettings;
import dev.vgpu.core.schedule.ShareScheduler;
import dev.vgpu.core.schedule.Tenant;
import dev.vgpu.core.schedule.TurnGate;
import dev.vgpu.request.MemorySize;
import dev.vgpu.request.PreemptionClass;
import dev.vgpu.request.SharePolicy;
import dev.vgpu.request.VirtualGpuRequest;
import java.util.concurrent.TimeUnit;
import org.openjdk.jmh.annotations.Benchmark;
import org.openjdk.jmh.annotations.BenchmarkMode;
import org.openjdk.jmh.annotations.Mode;
import org.openjdk.jmh.annotations.OutputTimeUnit;
import org.openjdk.jmh.annotations.Param;
import org.openjdk.jmh.annotations.Scope;
import org.openjdk.jmh.annotations.Setup;
import org.openjdk.jmh.annotations.State;

/**
 * The cost of a decision of the share scheduler while all tenants have work. The turn of one tenant
 * ends, its use is charged, the next tenant is chosen, and its gate is opened. Runs in virtual
 * time; the gates cost nothing.
 */
@State(Scope.Benchmark)
@BenchmarkMode(Mode.AverageTime)
@OutputTimeUnit(TimeUnit.NANOSECONDS)
public class SchedulerBenchmark {
  /** The number of tenants with work. */
  @Param({"2", "16", "128", "1024"})
  public int tenants;

  private final ShareScheduler scheduler =
      new ShareScheduler(
          SchedulerSettings.from(GpuSettings.defaults()), (victim, by, asked) -> {}, 0);
  private final IdleGate visitorGate = new IdleGate();
  private final Tenant visitor =
      new Tenant("visitor", visitorGate, request(SharePolicy.BEST_EFFORT, 0));
  private long nowNs;

  /** The gate of a tenant that always has work, and uses the GPU whenever the gate is open. */
  private static final class BusyGate implements TurnGate {
    private boolean open;
    private long usedNs;
    private long readNs;

    @Override
    public void open() {
      open = true;
    }

    @Override
    public boolean shut() {
      open = false;
      return true;
    }

    @Override
    public int preempt() {
      return 0;
    }

    @Override
    public boolean hasWork() {
      return true;
    }

    @Override
    public long gpuTimeNs(long nowNs) {
      usedNs += open ? nowNs - readNs : 0;
      readNs = nowNs;
      return usedNs;
    }

    @Override
    public void contended(boolean contended) {}
  }

  /** The gate of a tenant that has work when told so. */
  private static final class IdleGate implements TurnGate {
    private boolean works;

    @Override
    public void open() {}

    @Override
    public boolean shut() {
      return true;
    }

    @Override
    public int preempt() {
      return 0;
    }

    @Override
    public boolean hasWork() {
      return works;
    }

    @Override
    public long gpuTimeNs(long nowNs) {
      return 0;
    }

    @Override
    public void contended(boolean contended) {}
  }

  /** Creates the tenants: fixed and burst shares of all sizes that fit, the rest best effort. */
  @Setup
  public void start() {
    int left = 95;
    for (int i = 0; i < tenants; i++) {
      int percent = 1 + i / 2;
      boolean guaranteed = percent <= left && i < tenants - 1;
      left -= guaranteed ? percent : 0;
      SharePolicy policy = i % 2 == 0 ? SharePolicy.FIXED_SHARE : SharePolicy.BURST_SHARE;
      Tenant tenant =
          new Tenant(
              "t" + i,
              new BusyGate(),
              request(guaranteed ? policy : SharePolicy.BEST_EFFORT, percent));
      scheduler.wanted(tenant, 0);
    }
    int ignored = scheduler.doWork(0);
  }

  private static VirtualGpuRequest request(SharePolicy policy, int percent) {
    VirtualGpuRequest.Builder builder =
        VirtualGpuRequest.builder()
            .memory(MemorySize.ofMebibytes(1))
            .policy(policy)
            .preemptionClass(PreemptionClass.OFFLINE);
    return policy == SharePolicy.BEST_EFFORT
        ? builder.build()
        : builder.computePercent(percent).build();
  }

  /** {@return how many gates were opened or closed when the turn ended} */
  @Benchmark
  public int turnEnds() {
    nowNs = Math.max(nowNs + 1, scheduler.nextWakeNs());
    return scheduler.doWork(nowNs);
  }

  /** {@return how many gates were opened or closed when one more tenant got and lost work} */
  @Benchmark
  public int oneComesAndGoes() {
    nowNs += 1_000;
    visitorGate.works = true;
    scheduler.wanted(visitor, nowNs);
    int work = scheduler.doWork(nowNs);
    nowNs += 1_000;
    visitorGate.works = false;
    scheduler.drained(visitor, nowNs);
    return work + scheduler.doWork(nowNs);
  }
}
