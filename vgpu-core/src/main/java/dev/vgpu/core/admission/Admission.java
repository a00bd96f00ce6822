package dev.vgpu.core.admission;

import dev.vgpu.MemorySize;
import dev.vgpu.PreemptionClass;
import dev.vgpu.VirtualGpuRequest;
import java.util.Optional;

/**
 * What is granted of one GPU, and what still fits. Guaranteed shares of online and nearline tenants
 * together never exceed 100 percent, nor do those of offline tenants. Quotas never exceed the
 * memory times the oversubscription; those of online tenants never exceed the memory itself.
 *
 * <p>Not safe for use by several threads, but for {@link #entitledPercent}.
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

  /** What each best-effort tenant gets while all of its level have work; volatile to be read. */
  private volatile double bestEffortPercent = ALL_PERCENT;

  private volatile double bestEffortPercentOffline = ALL_PERCENT;

  /**
   * Makes one for a GPU of which nothing is granted.
   *
   * @param name how refusals call the GPU
   * @param usable the memory that tenants can have
   * @param oversubscriptionPercent how much quotas may add up to, in percent of that
   */
  public Admission(String name, MemorySize usable, int oversubscriptionPercent) {
    this.name = name;
    this.usable = usable;
    this.mostBytes =
        usable.bytes() / ALL_PERCENT * oversubscriptionPercent
            + usable.bytes() % ALL_PERCENT * oversubscriptionPercent / ALL_PERCENT;
  }

  /** Books what a request takes. Does not look whether it fits. */
  public void take(VirtualGpuRequest request) {
    book(request, 1);
  }

  /** Books out what a request had taken. */
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

  /** Divides what is not guaranteed among the best-effort tenants that are booked now. */
  public void divide() {
    bestEffortPercent = Math.max(0.0, ALL_PERCENT - takenPercent) / Math.max(1, takers);
    bestEffortPercentOffline =
        Math.max(0.0, ALL_PERCENT - takenPercentOffline) / Math.max(1, takersOffline);
  }

  /** {@return the percent of the GPU's time of a tenant that was booked, while all have work} */
  public double entitledPercent(VirtualGpuRequest request) {
    if (request.computePercent().isPresent()) {
      return request.computePercent().getAsInt();
    }
    return isOffline(request) ? bestEffortPercentOffline : bestEffortPercent;
  }

  /** {@return whether a request fits beside what is granted} */
  public boolean fits(VirtualGpuRequest request) {
    return fits(request, request.computePercent().orElse(0), request.memory().bytes());
  }

  private boolean fits(VirtualGpuRequest request, int percent, long bytes) {
    return percent <= freePercent(request.preemptionClass())
        && bytes <= freeMemory(request.preemptionClass()).bytes();
  }

  /** {@return whether a request would fit if nothing was granted} */
  public boolean couldFit(VirtualGpuRequest request) {
    return request.memory().compareTo(usable) <= 0;
  }

  /**
   * {@return whether a request takes nothing that another may need, which does not fit now} Of all
   * that it takes, as much as the other asks for is left.
   */
  public boolean fitsBeside(VirtualGpuRequest request, VirtualGpuRequest other) {
    int percent = request.computePercent().orElse(0);
    boolean sameLevel = isOffline(request) == isOffline(other);
    int others = percent > 0 && sameLevel ? other.computePercent().orElse(0) : 0;
    return fits(request, percent + others, request.memory().bytes() + other.memory().bytes());
  }

  /** {@return what does not fit, in words; empty if the request fits} */
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

  /** {@return what is free for a class, in words} */
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

  /** {@return the memory that no quota takes, oversubscription included} */
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
