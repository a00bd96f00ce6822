package dev.vgpu.dashboard;

import dev.vgpu.request.GpuId;
import dev.vgpu.request.SharePolicy;
import dev.vgpu.request.VirtualGpuRequest;
import dev.vgpu.watch.GpuLease;
import dev.vgpu.watch.GpuUsage;
import java.util.Locale;

/** A tenant as JSON for the page. Values that cannot be measured are null. */
final class TenantJson {
  /** This backend only enforces turns: nothing counts the memory that calls in a JVM allocate. */
  private static final String IN_PROCESS = "in-process";

  private static final int MOST_PIDS = 20;
  private static final double THOUSANDTHS = 1e3;

  private TenantJson() {}

  static void put(JsonText json, GpuLease lease) {
    VirtualGpuRequest request = lease.request();
    json.put("id", lease.id())
        .put("name", request.name())
        .put("class", GpuJson.word(request.preemptionClass()))
        .put("policy", word(request.policy()))
        .put("entitled", TenantTrack.tenths(lease.entitledPercent()))
        .put("quota", request.memory().bytes() * lease.gpus().size())
        .put("suspended", lease.isSuspended())
        .put("memory_suspended", lease.memorySuspended().bytes())
        .put("backend", lease.backend().orElse(null))
        .put("passed_through", lease.passedThrough())
        .put("impaired", lease.impaired().orElse(null))
        .put("preemption", lease.preemption().map(GpuJson::word).orElse(null))
        .put("preemption_reason", lease.preemptionReason().orElse(null))
        .put("owner", lease.pid());
    if (request.computePercent().isPresent()) {
      json.put("share", request.computePercent().getAsInt());
    }
    GpuJson.put(json, "gpus", lease.gpus().stream().map(GpuId::value).toList());
    json.array("pids");
    lease.processes().stream().limit(MOST_PIDS).forEach(json::add);
    json.endArray();
    put(json, lease.usage(), isCounted(lease));
  }

  private static void put(JsonText json, GpuUsage usage, boolean isCounted) {
    if (isCounted) {
      json.put("used", usage.memoryUsed().bytes()).put("denied", usage.deniedAllocations());
    } else {
      json.putNull("used").putNull("denied");
    }
    json.put("reserved", usage.memoryReserved().bytes())
        .put("gpu_ms", usage.gpuTime().toMillis())
        .put("processes", usage.processes())
        .put("running", usage.running())
        .put("waiting", usage.waiting())
        .put("calls", usage.calls())
        .put("launches", usage.launches())
        .put("preemptions", usage.preemptions());
    if (usage.slowdown().isPresent()) {
      json.put("slowdown", Math.round(usage.slowdown().getAsDouble() * THOUSANDTHS) / THOUSANDTHS);
    } else {
      json.putNull("slowdown");
    }
  }

  /**
   * {@return whether anything counts the tenant's allocations and copies} A usage of 0 may mean no
   * memory, or memory that nothing counts.
   */
  static boolean isCounted(GpuLease lease) {
    return lease.usage().memoryUsed().bytes() > 0
        || lease.backend().filter(name -> !name.equals(IN_PROCESS)).isPresent();
  }

  private static String word(SharePolicy policy) {
    return policy.name().toLowerCase(Locale.ROOT).replace('_', ' ');
  }
}
