package dev.vgpu.cli.simulation;

import static java.util.Objects.requireNonNull;

import dev.vgpu.cli.console.UserException;
import dev.vgpu.cli.simulation.TenantReader.FileTenant;
import dev.vgpu.request.MemorySize;
import dev.vgpu.request.VirtualGpuRequest;
import dev.vgpu.simulation.Mix;
import dev.vgpu.simulation.MixAdmission;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.Deque;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.stream.Collectors;

/**
 * Computes when tenants join and leave, and asks the pool's own admission whether the tenants
 * present at one time fit. Confined to one thread.
 */
final class Stays {
  /** Stands for a GPU whose memory the file does not state: no tenant is refused for it. */
  private static final MemorySize UNKNOWN_MEMORY = MemorySize.ofBytes(1L << 59);

  private final List<MixFile.FileGpu> gpus;
  private final Map<String, FileTenant> byName = new LinkedHashMap<>();
  private final Map<String, long[]> times = new LinkedHashMap<>();

  Stays(List<MixFile.FileGpu> gpus, List<FileTenant> tenants) {
    this.gpus = gpus;
    tenants.forEach(tenant -> byName.put(tenant.name(), tenant));
  }

  /** {@return the tenants to simulate} */
  List<Mix.Member> members(long durationNs) throws UserException {
    List<Mix.Member> members = new ArrayList<>();
    for (FileTenant tenant : byName.values()) {
      long[] stay = stay(tenant, new ArrayDeque<>());
      members.add(
          new Mix.Member(
              tenant.name(),
              tenant.gpu(),
              tenant.request(),
              tenant.model(),
              tenant.arrivals(),
              tenant.shape(),
              stay[0],
              stay[1]));
    }
    for (FileTenant tenant : byName.values()) {
      if (stay(tenant, new ArrayDeque<>())[0] < durationNs) {
        checkAdmission(tenant);
      }
    }
    return members;
  }

  /** When a tenant joins and leaves. */
  private long[] stay(FileTenant tenant, Deque<String> asking) throws UserException {
    long[] known = times.get(tenant.name());
    if (known != null) {
      return known;
    }
    asking.addLast(tenant.name());
    long baseNs = 0;
    for (Value after : tenant.after()) {
      baseNs = Math.max(baseNs, leaving(tenant, after, asking));
    }
    asking.removeLast();
    long joinNs = baseNs + tenant.joinNs();
    long leaveNs = Long.MAX_VALUE;
    if (tenant.stayNs() != null) {
      leaveNs = joinNs + tenant.stayNs();
    } else if (tenant.leaveNs() != null && tenant.leaveAt() != null) {
      leaveNs = tenant.leaveNs();
      if (leaveNs <= joinNs) {
        throw tenant
            .leaveAt()
            .error(
                "'"
                    + tenant.name()
                    + "' leaves at "
                    + Times.text(leaveNs)
                    + ", before it comes at "
                    + Times.text(joinNs));
      }
    }
    long[] found = {joinNs, leaveNs};
    times.put(tenant.name(), found);
    return found;
  }

  private long leaving(FileTenant tenant, Value after, Deque<String> asking) throws UserException {
    String name = after.text();
    if (name.equals(tenant.name())) {
      throw after.error("a cycle: '" + name + "' joins after itself");
    }
    FileTenant other = byName.get(name);
    if (other == null) {
      throw after.error(
          "there is no tenant '" + name + "'; there are " + String.join(", ", byName.keySet()));
    }
    if (asking.contains(name)) {
      throw after.error(
          "a cycle: each joins after the next: " + String.join(", ", asking) + ", " + name);
    }
    long leaveNs = stay(other, asking)[1];
    if (leaveNs == Long.MAX_VALUE) {
      throw after.error(
          "'" + name + "' never leaves, so nobody joins after it; give it a 'stay' or a 'leave'");
    }
    return leaveNs;
  }

  /**
   * The tenants of the same GPU that are present when this one joins, itself included, in the order
   * in which they join.
   */
  private List<FileTenant> present(FileTenant tenant) {
    long atNs = joinNs(tenant);
    return byName.values().stream()
        .filter(other -> other.gpu() == tenant.gpu())
        .filter(other -> joinNs(other) <= atNs && leaveNs(other) > atNs)
        .sorted(Comparator.comparingLong(this::joinNs))
        .toList();
  }

  private long joinNs(FileTenant tenant) {
    return requireNonNull(times.get(tenant.name()))[0];
  }

  private long leaveNs(FileTenant tenant) {
    return requireNonNull(times.get(tenant.name()))[1];
  }

  /**
   * Fails if the pool would refuse a tenant when this one joins. Tenants are admitted in the order
   * in which they join.
   */
  private void checkAdmission(FileTenant arriving) throws UserException {
    MixFile.FileGpu gpu = gpus.get(arriving.gpu());
    List<FileTenant> present = present(arriving);
    Optional<MixAdmission.Refusal> refusal =
        MixAdmission.firstRefusal(
            gpu.gpu().name(),
            gpu.memory() == null ? UNKNOWN_MEMORY : gpu.memory(),
            gpu.gpu().settings().memoryOversubscriptionPercent(),
            present.stream().map(FileTenant::request).toList());
    if (refusal.isPresent()) {
      FileTenant refused = present.get(refusal.get().index());
      List<FileTenant> granted = present.subList(0, refusal.get().index());
      Value at = refusal.get().isForShare() ? refused.shareAt() : refused.quotaAt();
      throw (at == null ? refused.at() : at)
          .error(
              "'"
                  + refused.name()
                  + "' is refused when it joins at "
                  + Times.text(joinNs(refused))
                  + ": "
                  + refusal.get().reason()
                  + "; there then: "
                  + granted.stream().map(Stays::described).collect(Collectors.joining(", ")));
    }
  }

  private static String described(FileTenant tenant) {
    VirtualGpuRequest request = tenant.request();
    String share =
        request.computePercent().isPresent()
            ? " " + request.computePercent().getAsInt() + " %"
            : "";
    return tenant.name() + share + " " + request.memory();
  }
}
