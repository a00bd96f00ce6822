package dev.vgpu.cli.simulation;

import dev.vgpu.PreemptionClass;
import dev.vgpu.cli.console.UserException;
import dev.vgpu.cli.simulation.TenantReader.FileTenant;
import dev.vgpu.core.simulate.Mix;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Deque;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.stream.Collectors;
import org.jspecify.annotations.Nullable;

/**
 * Finds out when tenants come and go, and whether those that are there at one time fit: what
 * admission would say of them. Confined to one thread.
 */
final class Admission {
  private final List<MixFile.FileGpu> gpus;
  private final Map<String, FileTenant> byName = new LinkedHashMap<>();
  private final Map<String, long[]> times = new LinkedHashMap<>();

  Admission(List<MixFile.FileGpu> gpus, List<FileTenant> tenants) {
    this.gpus = gpus;
    tenants.forEach(tenant -> byName.put(tenant.name(), tenant));
  }

  /** {@return the tenants, as they are simulated} */
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
        checkShares(tenant);
        checkMemory(tenant);
      }
    }
    return members;
  }

  /** When a tenant comes and goes. */
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
      throw after.error("a loop: '" + name + "' comes after itself");
    }
    FileTenant other = byName.get(name);
    if (other == null) {
      throw after.error(
          "there is no tenant '" + name + "'; there are " + String.join(", ", byName.keySet()));
    }
    if (asking.contains(name)) {
      throw after.error(
          "a loop: each comes after the next: " + String.join(", ", asking) + ", " + name);
    }
    long leaveNs = stay(other, asking)[1];
    if (leaveNs == Long.MAX_VALUE) {
      throw after.error(
          "'" + name + "' never leaves, so nobody comes after it; give it a 'stay' or a 'leave'");
    }
    return leaveNs;
  }

  /** Those of a GPU that are there when this one comes, itself included. */
  private List<FileTenant> present(FileTenant tenant) {
    long atNs = joinNs(tenant);
    return byName.values().stream()
        .filter(other -> other.gpu() == tenant.gpu())
        .filter(other -> joinNs(other) <= atNs && leaveNs(other) > atNs)
        .toList();
  }

  private long joinNs(FileTenant tenant) {
    return java.util.Objects.requireNonNull(times.get(tenant.name()))[0];
  }

  private long leaveNs(FileTenant tenant) {
    return java.util.Objects.requireNonNull(times.get(tenant.name()))[1];
  }

  private void checkShares(FileTenant tenant) throws UserException {
    Value at = tenant.shareAt();
    if (at == null) {
      return;
    }
    boolean offline = tenant.request().preemptionClass() == PreemptionClass.OFFLINE;
    List<FileTenant> guaranteed =
        present(tenant).stream()
            .filter(other -> other.request().computePercent().isPresent())
            .filter(
                other -> (other.request().preemptionClass() == PreemptionClass.OFFLINE) == offline)
            .toList();
    int sum = guaranteed.stream().mapToInt(o -> o.request().computePercent().orElse(0)).sum();
    if (sum > 100) {
      throw last(guaranteed, at)
          .error(
              "shares do not add up: the guaranteed shares of "
                  + (offline ? "offline" : "online and nearline")
                  + " tenants on "
                  + gpus.get(tenant.gpu()).gpu().name()
                  + " are "
                  + sum
                  + " percent at "
                  + Times.text(joinNs(tenant))
                  + ", at most 100 fit: "
                  + guaranteed.stream()
                      .map(o -> o.name() + " " + o.request().computePercent().orElse(0))
                      .collect(Collectors.joining(", ")));
    }
  }

  /** The last one in the file is the one too many. */
  private static Value last(List<FileTenant> tenants, Value otherwise) {
    Value share = tenants.get(tenants.size() - 1).shareAt();
    return share == null ? otherwise : share;
  }

  private void checkMemory(FileTenant tenant) throws UserException {
    MixFile.FileGpu gpu = gpus.get(tenant.gpu());
    @Nullable Value at = tenant.quotaAt();
    if (gpu.memory() == null || at == null) {
      return;
    }
    double room =
        gpu.memory().bytes() / 100.0 * gpu.gpu().settings().memoryOversubscriptionPercent();
    double sum = present(tenant).stream().mapToDouble(o -> o.request().memory().bytes()).sum();
    if (sum > room) {
      throw at.error(
          "quotas do not fit: with '"
              + tenant.name()
              + "' they are "
              + Math.round(sum / (1 << 20))
              + " MiB on "
              + gpu.gpu().name()
              + " at "
              + Times.text(joinNs(tenant))
              + ", which has "
              + Math.round(room / (1 << 20)));
    }
  }
}
