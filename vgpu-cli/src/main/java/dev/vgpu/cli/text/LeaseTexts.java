package dev.vgpu.cli.text;

import com.fasterxml.jackson.databind.node.JsonNodeFactory;
import com.fasterxml.jackson.databind.node.ObjectNode;
import dev.vgpu.request.GpuId;
import dev.vgpu.request.MemorySize;
import dev.vgpu.request.SharePolicy;
import dev.vgpu.request.VirtualGpuRequest;
import dev.vgpu.watch.GpuLease;
import dev.vgpu.watch.GpuUsage;
import java.util.Locale;
import java.util.OptionalDouble;
import java.util.stream.Collectors;
import org.jspecify.annotations.Nullable;

/** Texts about a lease, for {@code ls} and {@code top}. */
public final class LeaseTexts {
  private LeaseTexts() {}

  /** The memory that its processes hold or its calls have reserved, whichever is larger. */
  static MemorySize memoryHeld(GpuLease lease) {
    GpuUsage usage = lease.usage();
    return usage.memoryUsed().compareTo(usage.memoryReserved()) >= 0
        ? usage.memoryUsed()
        : usage.memoryReserved();
  }

  /** The most memory that it may hold: its quota on each of its GPUs. */
  static MemorySize quota(GpuLease lease) {
    return MemorySize.ofBytes(lease.request().memory().bytes() * lease.gpus().size());
  }

  /** {@return the memory in use, the quota, and whether the lease is suspended} */
  public static String memory(GpuLease lease) {
    MemorySize held = memoryHeld(lease);
    String of = Words.size(quota(lease));
    String suspended = lease.isSuspended() ? " suspended" : "";
    return (held.bytes() == 0 ? "0" : Words.size(held)) + "/" + of + suspended;
  }

  /** {@return the policy, and the percent of the GPU's time that it is entitled to} */
  public static String share(GpuLease lease) {
    SharePolicy policy = lease.request().policy();
    String word = policy == SharePolicy.BEST_EFFORT ? "best" : Words.of(policy);
    return String.format(Locale.ROOT, "%s %.0f%%", word, lease.entitledPercent());
  }

  /** The GPUs from which it is cut. */
  public static String gpus(GpuLease lease) {
    return lease.gpus().stream().map(GpuId::value).collect(Collectors.joining(" "));
  }

  /** Null if the slowdown is not known. */
  private static @Nullable Double slowdown(GpuUsage usage) {
    OptionalDouble slowdown = usage.slowdown();
    return slowdown.isPresent() ? Math.round(slowdown.getAsDouble() * 1e3) / 1e3 : null;
  }

  /** {@return the lease as JSON, for programs} */
  public static ObjectNode json(GpuLease lease) {
    VirtualGpuRequest request = lease.request();
    GpuUsage usage = lease.usage();
    ObjectNode json = JsonNodeFactory.instance.objectNode();
    json.put("id", lease.id())
        .put("name", request.name())
        .put("gpu", lease.gpu().value())
        .put("gpu_count", lease.gpus().size())
        .put("class", Words.of(request.preemptionClass()))
        .put("policy", Words.of(request.policy()));
    request
        .computePercent()
        .ifPresentOrElse(
            percent -> json.put("share_percent", percent), () -> json.putNull("share_percent"));
    json.put("share_entitled_percent", Math.round(lease.entitledPercent() * 100) / 100.0);
    json.putArray("gpus");
    lease.gpus().forEach(gpu -> json.withArray("gpus").add(gpu.value()));
    json.putArray("pids");
    lease.processes().forEach(json.withArray("pids")::add);
    lease.impaired().ifPresent(reason -> json.put("impaired", reason));
    json.put("preemption", lease.preemption().map(Words::word).orElse(null))
        .put("preemption_reason", lease.preemptionReason().orElse(null));
    return json.put("suspended", lease.isSuspended())
        .put("memory_used_bytes", usage.memoryUsed().bytes())
        .put("memory_suspended_bytes", lease.memorySuspended().bytes())
        .put("memory_reserved_bytes", usage.memoryReserved().bytes())
        .put("memory_quota_bytes", request.memory().bytes())
        .put("gpu_time_ns", usage.gpuTime().toNanos())
        .put("copy_time_ns", usage.copyTime().toNanos())
        .put("processes", usage.processes())
        .put("running", usage.running())
        .put("waiting", usage.waiting())
        .put("calls", usage.calls())
        .put("launches", usage.launches())
        .put("preemptions", usage.preemptions())
        .put("denied_allocations", usage.deniedAllocations())
        .put("slowdown", slowdown(usage))
        .put("owner_pid", lease.pid());
  }
}
