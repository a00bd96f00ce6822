package dev.vgpu.bench.chaos;

import dev.vgpu.MemorySize;
import dev.vgpu.PreemptionClass;
import dev.vgpu.SharePolicy;
import dev.vgpu.bench.harness.Answer;
import dev.vgpu.bench.harness.Child;
import dev.vgpu.bench.harness.NanoClock;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import org.jspecify.annotations.Nullable;

/** A place of a soak, where tenants come and go. Confined to one thread. */
final class SoakTenant {
  /** Long enough that eight busy GPUs leave the machine idle. */
  static final long KERNEL_NS = 8_000_000;

  private record Kind(SharePolicy policy, int percent, PreemptionClass preemptionClass) {}

  /** The demo's models on each GPU. The guarantees leave something for those without one. */
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

  /** It works, as long as nobody has told it to pause. */
  boolean paused;

  /** Nothing was done to it since it was read last. */
  boolean undisturbed;

  private long kernels;
  private long readNs;
  private long progressNs;

  /** The one of a number. */
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

  /** A program begins to work. */
  void begin(Child started) {
    child = started;
    paused = false;
    touched();
  }

  /** Something is done to it. */
  void touched() {
    undisturbed = false;
    kernels = -1;
    progressNs = NanoClock.nanoTime();
  }

  /** What it got since it was read last: its part of the GPU's time; empty: not known. */
  record Held(SharePolicy policy, double part, double ofShare) {}

  /** Reads how far it has come. */
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

  /** For how long it has not come on. */
  double standsStillSeconds() {
    return paused || child == null ? 0 : (NanoClock.nanoTime() - progressNs) / 1e9;
  }

  /** Its program's command. */
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
