package dev.vgpu.k8s.node.health;

import dev.vgpu.watch.GpuHealth;

/**
 * Whether a GPU can be relied on. Immutable.
 *
 * @param kind the worst that is known
 * @param reason why, in words; empty if nothing was ever wrong
 */
public record Condition(Kind kind, String reason) {
  /** Nothing is wrong. */
  public static final Condition GOOD = new Condition(Kind.GOOD, "");

  /** From the best to the worst. */
  public enum Kind {
    /** Its driver answers, and reports no fault. */
    GOOD,
    /** It works, but its driver reported a fault. Nothing new is scheduled on it. */
    DEGRADED,
    /** Its MIG mode was switched after the role had started: what the role offers is not there. */
    MIG,
    /** It does not answer. */
    LOST
  }

  static Condition of(GpuHealth health, String reason) {
    return new Condition(
        switch (health) {
          case HEALTHY -> Kind.GOOD;
          case LOST -> Kind.LOST;
          default -> Kind.DEGRADED;
        },
        reason);
  }

  Condition or(Condition other) {
    return kind.compareTo(other.kind) >= 0 ? this : other;
  }

  /** {@return whether nothing is wrong} */
  public boolean isGood() {
    return kind == Kind.GOOD;
  }

  /** {@return whether programs can run on what the role offers of it} */
  public boolean isUsable() {
    return kind.compareTo(Kind.MIG) < 0;
  }
}
