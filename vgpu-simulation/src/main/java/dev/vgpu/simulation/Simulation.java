package dev.vgpu.simulation;

import dev.vgpu.core.schedule.SchedulerSettings;
import java.util.ArrayList;
import java.util.List;
import java.util.Objects;
import java.util.function.LongConsumer;
import org.jspecify.annotations.Nullable;

/**
 * Runs a {@link Mix} through the scheduler in virtual time. The same mix gives the same result.
 * Single use; not thread-safe.
 */
public final class Simulation {
  private static final long PROGRESS_NS = 1_000_000_000;
  private static final long MOST_POINTS = 600;

  private final Mix mix;
  private final LongConsumer progress;
  private final int stepsOfPoint;
  private final MixResult.@Nullable OfTenant[] tenants;

  private Simulation(Mix mix, LongConsumer progress) {
    this.mix = mix;
    this.progress = progress;
    long steps = (mix.durationNs() - mix.warmUpNs()) / ShareRecorder.STEP_NS;
    this.stepsOfPoint = (int) Math.max(1, (steps + MOST_POINTS - 1) / MOST_POINTS);
    this.tenants = new MixResult.OfTenant[mix.tenants().size()];
  }

  /**
   * Runs a mix.
   *
   * @param mix the mix to simulate
   * @param progress called from time to time with the virtual time that has passed, summed over all
   *     GPUs
   * @return the result
   */
  public static MixResult run(Mix mix, LongConsumer progress) {
    return new Simulation(mix, progress).run();
  }

  private MixResult run() {
    List<MixResult.OfGpu> gpus = new ArrayList<>();
    for (int gpu = 0; gpu < mix.gpus().size(); gpu++) {
      gpus.add(new OneGpu(gpu).run());
    }
    List<MixResult.OfTenant> all = new ArrayList<>();
    for (MixResult.OfTenant tenant : tenants) {
      all.add(Objects.requireNonNull(tenant));
    }
    return new MixResult(mix, gpus, all, stepsOfPoint * ShareRecorder.STEP_NS);
  }

  /** The simulation of one GPU; the GPUs of a mix are independent. */
  private final class OneGpu {
    private final int number;
    private final Mix.Gpu gpu;
    private final ShareRecorder recorder;
    private final VirtualNode node;
    private final List<Joined> joined = new ArrayList<>();
    private int stepsBefore;

    /** A tenant that has joined. */
    private final class Joined {
      final TenantRecord record;
      final VirtualGate gate;
      final RequestWork work;
      int openedBefore;
      long measuredBeforeNs;

      Joined(TenantRecord record) {
        Mix.Member member = record.member;
        this.record = record;
        this.work =
            new RequestWork(
                member.arrivals(), member.shape(), member.joinNs(), mix.seed(), member.name());
        this.gate = new VirtualGate(member.name(), member.model(), work);
      }
    }

    OneGpu(int number) {
      this.number = number;
      this.gpu = mix.gpus().get(number);
      List<Mix.Member> members = new ArrayList<>();
      List<Integer> indexes = new ArrayList<>();
      for (int i = 0; i < mix.tenants().size(); i++) {
        if (mix.tenants().get(i).gpu() == number) {
          members.add(mix.tenants().get(i));
          indexes.add(i);
        }
      }
      double floor = gpu.settings().offlineFloorPercent() / 100.0;
      this.recorder = new ShareRecorder(members, indexes, floor, stepsOfPoint);
      SchedulerSettings settings = SchedulerSettings.from(gpu.settings());
      this.node = new VirtualNode(settings, gpu.sliceNs(), gpu.changeNs(), recorder);
    }

    MixResult.OfGpu run() {
      for (TenantRecord record : recorder.records()) {
        node.at(record.member.joinNs(), () -> join(record));
      }
      if (mix.warmUpNs() == 0) {
        recorder.startCounting(0);
      } else {
        runUntil(mix.warmUpNs());
        startCounting();
      }
      runUntil(mix.durationNs());
      recorder.end(mix.durationNs());
      long turns = 0;
      for (Joined tenant : joined) {
        turns += tenant.gate.opened() - tenant.openedBefore;
      }
      recorder.records().forEach(record -> tenants[record.index] = result(record));
      return new MixResult.OfGpu(
          gpu.name(),
          recorder.busyNs(),
          recorder.lostNs(),
          turns,
          recorder.switches(),
          recorder.preemptions(),
          node.steps() - stepsBefore,
          mix.warmUpNs(),
          recorder.spans());
    }

    private void runUntil(long endNs) {
      while (node.nowNs() < endNs) {
        node.runUntil(Math.min(endNs, node.nowNs() + PROGRESS_NS));
        progress.accept(number * mix.durationNs() + node.nowNs());
      }
    }

    private void join(TenantRecord record) {
      Joined tenant = new Joined(record);
      joined.add(tenant);
      recorder.joins(record, tenant.work.isEndless(), node.nowNs());
      int tenantNumber = node.add(tenant.gate, record.member.request());
      if (record.member.leaveNs() < mix.durationNs()) {
        node.at(
            record.member.leaveNs(),
            () -> {
              node.remove(tenantNumber);
              recorder.leaves(record, node.nowNs());
            });
      }
    }

    private void startCounting() {
      recorder.startCounting(mix.warmUpNs());
      stepsBefore = node.steps();
      for (Joined tenant : joined) {
        tenant.openedBefore = tenant.gate.opened();
        tenant.measuredBeforeNs = tenant.gate.gpuTimeNs(node.nowNs());
        tenant.work.startCounting();
      }
    }

    private long presentNs(Mix.Member member) {
      long untilNs = Math.min(member.leaveNs(), mix.durationNs());
      return Math.max(0, untilNs - Math.max(member.joinNs(), mix.warmUpNs()));
    }

    private MixResult.OfTenant result(TenantRecord record) {
      Joined tenant = null;
      for (Joined each : joined) {
        tenant = each.record == record ? each : tenant;
      }
      return new MixResult.OfTenant(
          record.member.name(),
          presentNs(record.member),
          record.usableNs,
          record.usedNs,
          tenant == null ? 0 : tenant.gate.gpuTimeNs(node.nowNs()) - tenant.measuredBeforeNs,
          record.entitledNs,
          record.worst,
          record.worstAtNs,
          tenant == null ? 0 : tenant.work.arrived(),
          tenant == null ? 0 : tenant.work.answered(),
          tenant == null ? 0 : tenant.work.kernels(),
          tenant == null ? 0 : tenant.gate.opened() - tenant.openedBefore,
          record.preemptions,
          tenant == null ? new LatencyHistogram() : tenant.work.latencies(),
          record.series,
          record.entitledSeries);
    }
  }
}
