package dev.vgpu.core.admission;

import dev.vgpu.request.MemorySize;
import dev.vgpu.request.PreemptionClass;
import dev.vgpu.request.VirtualGpuRequest;
import java.util.Optional;

/**
 * What is granted of one GPU, and what still fits. The guaranteed shares of online and nearline
 * tenants together never exceed 100 percent; nor do those of offline tenants. All quotas together
 * never exceed the memory times the oversubscription. The quotas of online tenants never exceed the
 * memory itself.
 *
 * <p>Not thread-safe, except for {@link #entitledPercent}.
 */
public final class Admission {
  private static final int ALL_PERCENT = 100;

  private final String name;
  private final MemorySize usable;
  private final long mostBytes;
  private long takenBytes;
  private long takenBytesOnline;
  private int takenPercent;
  private int takenPercentOffline;
  private int takers;
  private int takersOffline;

  /**
   * The percent that each best-effort tenant gets while all tenants of its level have work.
   * Volatile, because {@link #entitledPercent} reads it without a lock.
   */
  private volatile double bestEffortPercent = ALL_PERCENT;

  private volatile double bestEffortPercentOffline = ALL_PERCENT;

  /**
   * Creates the books of a GPU of which nothing is granted.
   *
   * @param name the GPU's name in refusals
   * @param usable the memory that tenants can have
   * @param oversubscriptionPercent the most that quotas may add up to, in percent of {@code usable}
   */
  public Admission(String name, MemorySize usable, int oversubscriptionPercent) {
    this.name = name;
    this.usable = usable;
    this.mostBytes =
        usable.bytes() / ALL_PERCENT * oversubscriptionPercent
            + usable.bytes() % ALL_PERCENT * oversubscriptionPercent / ALL_PERCENT;
  }

  /** Books a request. Does not check whether it fits. */
  public void take(VirtualGpuRequest request) {
    book(request, 1);
  }

  /** Removes a request that was booked. */
  public void giveBack(VirtualGpuRequest request) {
    book(request, -1);
  }

  private void book(VirtualGpuRequest request, int sign) {
    takenBytes += sign * request.memory().bytes();
    if (request.preemptionClass() == PreemptionClass.ONLINE) {
      takenBytesOnline += sign * request.memory().bytes();
    }
    int percent = sign * request.computePercent().orElse(0);
    int takes = request.computePercent().isEmpty() ? sign : 0;
    if (isOffline(request)) {
      takenPercentOffline += percent;
      takersOffline += takes;
    } else {
      takenPercent += percent;
      takers += takes;
    }
  }

  /** Divides the percent that is not guaranteed among the best-effort tenants booked now. */
  public void divide() {
    bestEffortPercent = Math.max(0.0, ALL_PERCENT - takenPercent) / Math.max(1, takers);
    bestEffortPercentOffline =
        Math.max(0.0, ALL_PERCENT - takenPercentOffline) / Math.max(1, takersOffline);
  }

  /** {@return the percent of GPU time that a booked tenant gets while all tenants have work} */
  public double entitledPercent(VirtualGpuRequest request) {
    if (request.computePercent().isPresent()) {
      return request.computePercent().getAsInt();
    }
    return isOffline(request) ? bestEffortPercentOffline : bestEffortPercent;
  }

  /** {@return whether a request fits beside what is already granted} */
  public boolean fits(VirtualGpuRequest request) {
    return fits(request, request.computePercent().orElse(0), request.memory().bytes());
  }

  private boolean fits(VirtualGpuRequest request, int percent, long bytes) {
    return percent <= freePercent(request.preemptionClass())
        && bytes <= freeMemory(request.preemptionClass()).bytes();
  }

  /** {@return whether the memory of a request would fit on the empty GPU} */
  public boolean couldFit(VirtualGpuRequest request) {
    return request.memory().compareTo(usable) <= 0;
  }

  /**
   * {@return whether a request fits and leaves enough for another request} Only what both need
   * counts: memory, and the guaranteed percent if both are of the same level.
   */
  public boolean fitsBeside(VirtualGpuRequest request, VirtualGpuRequest other) {
    int percent = request.computePercent().orElse(0);
    boolean sameLevel = isOffline(request) == isOffline(other);
    int others = percent > 0 && sameLevel ? other.computePercent().orElse(0) : 0;
    return fits(request, percent + others, request.memory().bytes() + other.memory().bytes());
  }

  /** {@return the reason why a request does not fit; empty if it fits} */
  public Optional<String> lack(VirtualGpuRequest request) {
    int percent = request.computePercent().orElse(0);
    int free = freePercent(request.preemptionClass());
    if (percent > free) {
      return Optional.of(
          "the guaranteed shares of "
              + level(request.preemptionClass())
              + " tenants would add up to "
              + (ALL_PERCENT - free + percent)
              + " percent of gpu="
              + name
              + ", at most "
              + ALL_PERCENT
              + " (ask for "
              + Math.max(0, free)
              + " or less, or for best effort)");
    }
    MemorySize freeMemory = freeMemory(request.preemptionClass());
    if (request.memory().compareTo(freeMemory) > 0) {
      return Optional.of(
          "memory="
              + request.memory()
              + " is more than the "
              + freeMemory
              + " that are free on gpu="
              + name);
    }
    return Optional.empty();
  }

  /** {@return what is free for a class, as text} */
  public String free(PreemptionClass preemptionClass) {
    return "gpu="
        + name
        + " freePercent("
        + level(preemptionClass)
        + ")="
        + freePercent(preemptionClass)
        + " freeMemory="
        + freeMemory(preemptionClass)
        + " usableMemory="
        + usable;
  }

  /** {@return the memory that may still be granted to tenants of a class} */
  public MemorySize freeMemory(PreemptionClass preemptionClass) {
    long free = freeMemory().bytes();
    if (preemptionClass == PreemptionClass.ONLINE) {
      free = Math.min(free, Math.max(0, usable.bytes() - takenBytesOnline));
    }
    return MemorySize.ofBytes(free);
  }

  /** {@return the memory that is not covered by quotas, oversubscription included} */
  public MemorySize freeMemory() {
    return MemorySize.ofBytes(Math.max(0, mostBytes - takenBytes));
  }

  /** {@return the percent that may still be guaranteed to tenants of a class} */
  public int freePercent(PreemptionClass preemptionClass) {
    boolean offline = preemptionClass == PreemptionClass.OFFLINE;
    return ALL_PERCENT - (offline ? takenPercentOffline : takenPercent);
  }

  private static boolean isOffline(VirtualGpuRequest request) {
    return request.preemptionClass() == PreemptionClass.OFFLINE;
  }

  private static String level(PreemptionClass preemptionClass) {
    return preemptionClass == PreemptionClass.OFFLINE ? "offline" : "online+nearline";
  }
}
