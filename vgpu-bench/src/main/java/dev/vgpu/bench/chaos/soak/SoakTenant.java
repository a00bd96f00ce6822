package dev.vgpu.bench.chaos.soak;

import dev.vgpu.bench.chaos.ChaosFailure;
import dev.vgpu.bench.chaos.Tenant;
import dev.vgpu.bench.harness.Answer;
import dev.vgpu.bench.harness.Child;
import dev.vgpu.bench.harness.NanoClock;
import dev.vgpu.request.MemorySize;
import dev.vgpu.request.PreemptionClass;
import dev.vgpu.request.SharePolicy;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import org.jspecify.annotations.Nullable;

/** A place for a tenant; tenants of a soak test come and go there. Confined to one thread. */
final class SoakTenant {
  /** Long enough that eight busy GPUs leave the processors mostly idle. */
  static final long KERNEL_NS = 8_000_000;

  private record Kind(SharePolicy policy, int percent, PreemptionClass preemptionClass) {}

  /** The kinds of tenants on each GPU. Their guarantees leave a part for those without one. */
  private static final List<Kind> KINDS =
      List.of(
          new Kind(SharePolicy.FIXED_SHARE, 20, PreemptionClass.ONLINE),
          new Kind(SharePolicy.BURST_SHARE, 20, PreemptionClass.ONLINE),
          new Kind(SharePolicy.BURST_SHARE, 20, PreemptionClass.NEARLINE),
          new Kind(SharePolicy.FIXED_SHARE, 10, PreemptionClass.NEARLINE),
          new Kind(SharePolicy.BEST_EFFORT, 0, PreemptionClass.NEARLINE),
          new Kind(SharePolicy.BEST_EFFORT, 0, PreemptionClass.OFFLINE),
          new Kind(SharePolicy.BEST_EFFORT, 0, PreemptionClass.OFFLINE),
          new Kind(SharePolicy.BEST_EFFORT, 0, PreemptionClass.OFFLINE));

  private static final MemorySize QUOTA = MemorySize.ofMebibytes(256);

  final Tenant tenant;
  @Nullable Child child;

  /** Whether the program was told to pause. */
  boolean paused;

  /** Whether nothing was done to the program since the last read. */
  boolean undisturbed;

  private long kernels;
  private long readNs;
  private long progressNs;

  /** Creates the place with a number, which determines its kind and its GPU. */
  SoakTenant(int number, List<String> gpus) {
    Kind kind = KINDS.get(number / gpus.size() % KINDS.size());
    String name = kind.policy().name().substring(0, 2).toLowerCase(Locale.ROOT) + number + "-";
    this.tenant =
        new Tenant(
            name,
            kind.policy(),
            kind.percent(),
            kind.preemptionClass(),
            QUOTA,
            gpus.get(number % gpus.size()));
  }

  /** Records that a program has begun to work. */
  void begin(Child started) {
    child = started;
    paused = false;
    touched();
  }

  /** Records that something was done to the program. */
  void touched() {
    undisturbed = false;
    kernels = -1;
    progressNs = NanoClock.nanoTime();
  }

  /** The tenant's part of the GPU's time since the last read, also relative to its share. */
  record Held(SharePolicy policy, double part, double ofShare) {}

  /** Reads the progress. Null if the program is paused, or was disturbed since the last read. */
  @Nullable Held read() throws InterruptedException {
    Child of = child;
    if (of == null || paused) {
      return null;
    }
    Answer answer = of.ask("read");
    if (answer.whole("error") != 0) {
      throw new ChaosFailure(this + ": a call failed: " + answer.line());
    }
    long nowNs = NanoClock.nanoTime();
    long before = kernels;
    long sinceNs = nowNs - readNs;
    kernels = answer.whole("kernels");
    readNs = nowNs;
    if (kernels != before) {
      progressNs = nowNs;
    }
    boolean known = undisturbed && before >= 0;
    undisturbed = true;
    if (!known) {
      return null;
    }
    double part = (double) (kernels - before) * KERNEL_NS / sinceNs;
    return new Held(tenant.policy, part, tenant.percent == 0 ? 0 : part * 100 / tenant.percent);
  }

  /** How long the program has made no progress. */
  double standsStillSeconds() {
    return paused || child == null ? 0 : (NanoClock.nanoTime() - progressNs) / 1e9;
  }

  /** The arguments of its program. */
  static String[] command() {
    return new String[] {"load", Long.toString(KERNEL_NS), "132", "1", "start"};
  }

  Map<String, String> environment() {
    return tenant.environment();
  }

  @Override
  public String toString() {
    return tenant.name + " " + child;
  }
}
