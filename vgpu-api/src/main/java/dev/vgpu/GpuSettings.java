package dev.vgpu;

import static java.util.Objects.requireNonNull;

import java.time.Duration;
import java.util.Objects;
import org.jspecify.annotations.Nullable;

/**
 * How one GPU is shared: the length of turns, the minimum for offline tenants, and what happens
 * when memory runs short. Immutable.
 */
public final class GpuSettings {
  private static final GpuSettings DEFAULTS = builder().build();
  private static final Duration LONGEST = Duration.ofSeconds(10);
  private static final Duration LONGEST_STEP = Duration.ofMinutes(10);
  private static final int ALL_PERCENT = 100;
  private static final int MOST_OVERSUBSCRIPTION = 1_000;
  private static final int DEFAULT_LOW = 5;
  private static final int DEFAULT_HIGH = 10;

  private final Sharing sharing;
  private final Duration shortestTurn;
  private final Duration longestTurn;
  private final Duration idleLinger;
  private final int offlineFloorPercent;
  private final int memoryOversubscriptionPercent;
  private final int memoryLowWatermarkPercent;
  private final int memoryHighWatermarkPercent;
  private final Duration memoryForecast;
  private final Duration reclaimAskTimeout;
  private final Duration reclaimSuspendTimeout;
  private final Duration reclaimEndTimeout;
  private final Duration reclaimHoldBack;

  private GpuSettings(Builder builder) {
    this.sharing = builder.sharing;
    this.shortestTurn = builder.shortestTurn;
    this.longestTurn = builder.longestTurn;
    this.idleLinger = builder.idleLinger;
    this.offlineFloorPercent = builder.offlineFloorPercent;
    this.memoryOversubscriptionPercent = builder.memoryOversubscriptionPercent;
    boolean oversubscribed = builder.memoryOversubscriptionPercent > ALL_PERCENT;
    this.memoryLowWatermarkPercent =
        Objects.requireNonNullElse(builder.lowWatermark, oversubscribed ? DEFAULT_LOW : 0);
    this.memoryHighWatermarkPercent =
        Objects.requireNonNullElse(builder.highWatermark, oversubscribed ? DEFAULT_HIGH : 0);
    this.memoryForecast = builder.memoryForecast;
    this.reclaimAskTimeout = builder.reclaimAskTimeout;
    this.reclaimSuspendTimeout = builder.reclaimSuspendTimeout;
    this.reclaimEndTimeout = builder.reclaimEndTimeout;
    this.reclaimHoldBack = builder.reclaimHoldBack;
  }

  /** Whether several tenants may use a GPU at the same moment. */
  public enum Sharing {
    /** Together if the policies allow it, one at a time otherwise. */
    AUTO,
    /** Always one at a time. */
    STRICT
  }

  /** {@return the settings of a GPU without settings of its own} */
  public static GpuSettings defaults() {
    return DEFAULTS;
  }

  /** {@return a builder that holds the defaults} */
  public static Builder builder() {
    return new Builder();
  }

  /** {@return whether several tenants may use the GPU at the same moment} */
  public Sharing sharing() {
    return sharing;
  }

  /** {@return the shortest time that a tenant keeps the GPU while others wait} */
  public Duration shortestTurn() {
    return shortestTurn;
  }

  /** {@return the longest time that a tenant keeps the GPU while others wait} */
  public Duration longestTurn() {
    return longestTurn;
  }

  /** {@return how long an idle tenant that is next in line keeps its turn while others wait} */
  public Duration idleLinger() {
    return idleLinger;
  }

  /** {@return the minimum of GPU time that offline tenants with work get, 0 to 100 percent} */
  public int offlineFloorPercent() {
    return offlineFloorPercent;
  }

  /** {@return the total of all quotas allowed, in percent of the usable memory; 100 or more} */
  public int memoryOversubscriptionPercent() {
    return memoryOversubscriptionPercent;
  }

  /**
   * {@return the free memory below which reclaim starts, in percent of the usable memory; 0 is off}
   */
  public int memoryLowWatermarkPercent() {
    return memoryLowWatermarkPercent;
  }

  /** {@return the free memory at which reclaim stops, in percent of the usable memory} */
  public int memoryHighWatermarkPercent() {
    return memoryHighWatermarkPercent;
  }

  /** {@return how far ahead memory growth is extrapolated; zero means not at all} */
  public Duration memoryForecast() {
    return memoryForecast;
  }

  /** {@return how long an owner may take to free memory after it is asked} */
  public Duration reclaimAskTimeout() {
    return reclaimAskTimeout;
  }

  /** {@return how long suspending a tenant may take} */
  public Duration reclaimSuspendTimeout() {
    return reclaimSuspendTimeout;
  }

  /** {@return how long programs may take to end before they are killed} */
  public Duration reclaimEndTimeout() {
    return reclaimEndTimeout;
  }

  /** {@return how long the high watermark must be free before tenants may come back} */
  public Duration reclaimHoldBack() {
    return reclaimHoldBack;
  }

  @Override
  public boolean equals(@Nullable Object other) {
    return other instanceof GpuSettings settings && toString().equals(settings.toString());
  }

  @Override
  public int hashCode() {
    return toString().hashCode();
  }

  /** {@return all settings, by name} */
  @Override
  public String toString() {
    return "GpuSettings[sharing="
        + sharing
        + " shortestTurn="
        + shortestTurn
        + " longestTurn="
        + longestTurn
        + " idleLinger="
        + idleLinger
        + " offlineFloorPercent="
        + offlineFloorPercent
        + " memoryOversubscriptionPercent="
        + memoryOversubscriptionPercent
        + " memoryLowWatermarkPercent="
        + memoryLowWatermarkPercent
        + " memoryHighWatermarkPercent="
        + memoryHighWatermarkPercent
        + " memoryForecast="
        + memoryForecast
        + " reclaimAskTimeout="
        + reclaimAskTimeout
        + " reclaimSuspendTimeout="
        + reclaimSuspendTimeout
        + " reclaimEndTimeout="
        + reclaimEndTimeout
        + " reclaimHoldBack="
        + reclaimHoldBack
        + "]";
  }

  /** Builds settings. Not safe for use by several threads. */
  public static final class Builder {
    private Sharing sharing = Sharing.AUTO;
    private Duration shortestTurn = Duration.ofMillis(2);
    private Duration longestTurn = Duration.ofMillis(50);
    private Duration idleLinger = Duration.ofNanos(100_000);
    private int offlineFloorPercent;
    private int memoryOversubscriptionPercent = ALL_PERCENT;
    private @Nullable Integer lowWatermark;
    private @Nullable Integer highWatermark;
    private Duration memoryForecast = Duration.ofSeconds(1);
    private Duration reclaimAskTimeout = Duration.ofSeconds(2);
    private Duration reclaimSuspendTimeout = Duration.ofSeconds(5);
    private Duration reclaimEndTimeout = Duration.ofSeconds(5);
    private Duration reclaimHoldBack = Duration.ofSeconds(10);

    private Builder() {}

    /**
     * Sets whether several tenants may use the GPU at the same moment.
     *
     * @param sharing default {@link Sharing#AUTO}
     * @return this builder
     */
    public Builder sharing(Sharing sharing) {
      this.sharing = requireNonNull(sharing, "sharing");
      return this;
    }

    /**
     * Sets the shortest time that a tenant keeps the GPU while others wait, unless a more urgent
     * tenant preempts it. If switching costs too much, turns become longer, up to {@link
     * #longestTurn}. A call that is running when the turn ends is not interrupted; its overrun is
     * paid back.
     *
     * @param shortestTurn above 0, at most 10 s; default 2 ms
     * @return this builder
     * @throws IllegalArgumentException if out of range
     */
    public Builder shortestTurn(Duration shortestTurn) {
      this.shortestTurn = checkedTurn("shortestTurn", shortestTurn);
      return this;
    }

    /**
     * Sets the longest time that a tenant keeps the GPU while other tenants take turns with it.
     *
     * @param longestTurn at least {@link #shortestTurn}, at most 10 s; default 50 ms
     * @return this builder
     * @throws IllegalArgumentException if out of range
     */
    public Builder longestTurn(Duration longestTurn) {
      this.longestTurn = checkedTurn("longestTurn", longestTurn);
      return this;
    }

    /**
     * Sets how long a tenant that is behind its share keeps its turn between two calls while others
     * wait. This lets a thread that makes one call after the other use its share. 0 passes an idle
     * turn on at once.
     *
     * @param idleLinger 0 or more, at most 10 s; default 100 µs
     * @return this builder
     * @throws IllegalArgumentException if out of range
     */
    public Builder idleLinger(Duration idleLinger) {
      this.idleLinger = checked("idleLinger", idleLinger, LONGEST);
      return this;
    }

    /**
     * Sets the minimum of GPU time that offline tenants with work get while more urgent tenants
     * also have work.
     *
     * @param offlineFloorPercent 0 to 100; default 0
     * @return this builder
     * @throws IllegalArgumentException if out of range
     */
    public Builder offlineFloorPercent(int offlineFloorPercent) {
      this.offlineFloorPercent =
          checked("an offline floor", "offlineFloorPercent", offlineFloorPercent, 0, ALL_PERCENT);
      return this;
    }

    /**
     * Allows the quotas together to exceed the memory of the GPU. The quotas of online tenants
     * alone never exceed it. The other tenants rely on reclaim: when memory runs short, offline
     * tenants, then nearline ones, are asked to free memory, then suspended, and finally ended.
     *
     * @param memoryOversubscriptionPercent of the usable memory, 100 (none, the default) to 1,000
     * @return this builder
     * @throws IllegalArgumentException if out of range
     */
    public Builder memoryOversubscriptionPercent(int memoryOversubscriptionPercent) {
      this.memoryOversubscriptionPercent =
          checked(
              "an oversubscription",
              "memoryOversubscriptionPercent",
              memoryOversubscriptionPercent,
              ALL_PERCENT,
              MOST_OVERSUBSCRIPTION);
      return this;
    }

    /**
     * Sets the free memory below which reclaim starts, and at which it stops.
     *
     * @param lowPercent of the usable memory, 0 to 100; 0 turns reclaim off. Default 0, or 5 if
     *     memory is oversubscribed
     * @param highPercent of the usable memory, at least {@code lowPercent}, at most 100. Default 0,
     *     or 10 if memory is oversubscribed
     * @return this builder
     * @throws IllegalArgumentException if out of range, or if low is above high
     */
    public Builder memoryWatermarks(int lowPercent, int highPercent) {
      int low = checked("a watermark", "lowPercent", lowPercent, 0, ALL_PERCENT);
      int high = checked("a watermark", "highPercent", highPercent, 0, ALL_PERCENT);
      if (low > high) {
        throw new IllegalArgumentException(
            "the low watermark is above the high one: lowPercent="
                + low
                + " highPercent="
                + high
                + " (reclaim begins below the low one, and ends at the high one)");
      }
      lowWatermark = low;
      highWatermark = high;
      return this;
    }

    /**
     * Sets how far ahead memory growth is extrapolated, so that reclaim starts before memory runs
     * short.
     *
     * @param memoryForecast 0 (not at all) to 10 s; default 1 s
     * @return this builder
     * @throws IllegalArgumentException if out of range
     */
    public Builder memoryForecast(Duration memoryForecast) {
      this.memoryForecast = checked("memoryForecast", memoryForecast, LONGEST);
      return this;
    }

    /**
     * Sets how long an owner may take to free memory after it is asked, before its tenant is
     * suspended.
     *
     * @param reclaimAskTimeout 0 (owners are not asked) to 10 min; default 2 s
     * @return this builder
     * @throws IllegalArgumentException if out of range
     */
    public Builder reclaimAskTimeout(Duration reclaimAskTimeout) {
      this.reclaimAskTimeout = checked("reclaimAskTimeout", reclaimAskTimeout, LONGEST_STEP);
      return this;
    }

    /**
     * Sets how long suspending a tenant may take before its programs are ended.
     *
     * @param reclaimSuspendTimeout 0 (tenants are not suspended) to 10 min; default 5 s
     * @return this builder
     * @throws IllegalArgumentException if out of range
     */
    public Builder reclaimSuspendTimeout(Duration reclaimSuspendTimeout) {
      this.reclaimSuspendTimeout =
          checked("reclaimSuspendTimeout", reclaimSuspendTimeout, LONGEST_STEP);
      return this;
    }

    /**
     * Sets how long programs may take to end after SIGTERM before they are killed.
     *
     * @param reclaimEndTimeout 0 (killed at once) to 10 min; default 5 s
     * @return this builder
     * @throws IllegalArgumentException if out of range
     */
    public Builder reclaimEndTimeout(Duration reclaimEndTimeout) {
      this.reclaimEndTimeout = checked("reclaimEndTimeout", reclaimEndTimeout, LONGEST_STEP);
      return this;
    }

    /**
     * Sets how long the high watermark must be free before suspended tenants are resumed and ended
     * ones may come back.
     *
     * @param reclaimHoldBack 0 to 10 min; default 10 s
     * @return this builder
     * @throws IllegalArgumentException if out of range
     */
    public Builder reclaimHoldBack(Duration reclaimHoldBack) {
      this.reclaimHoldBack = checked("reclaimHoldBack", reclaimHoldBack, LONGEST_STEP);
      return this;
    }

    /**
     * {@return the settings}
     *
     * @throws IllegalArgumentException if the shortest turn is above the longest
     */
    public GpuSettings build() {
      if (shortestTurn.compareTo(longestTurn) > 0) {
        throw new IllegalArgumentException(
            "the shortest turn is above the longest: shortestTurn="
                + shortestTurn
                + " longestTurn="
                + longestTurn);
      }
      return new GpuSettings(this);
    }

    private static int checked(String what, String name, int percent, int least, int most) {
      if (percent < least || percent > most) {
        throw new IllegalArgumentException(
            what + " is not within " + least + " to " + most + ": " + name + "=" + percent);
      }
      return percent;
    }

    private static Duration checkedTurn(String name, Duration value) {
      if (requireNonNull(value, name).isZero()) {
        throw new IllegalArgumentException("turn length must be above 0: " + name + "=" + value);
      }
      return checked(name, value, LONGEST);
    }

    private static Duration checked(String name, Duration value, Duration most) {
      if (requireNonNull(value, name).isNegative() || value.compareTo(most) > 0) {
        throw new IllegalArgumentException(
            "a duration is not within 0 to " + most + ": " + name + "=" + value);
      }
      return value;
    }
  }
}
