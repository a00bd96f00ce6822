package dev.vgpu.bench.chaos;

import dev.vgpu.bench.harness.Child;
import java.util.List;

/** A program under a virtual GPU, and what was done to it. Confined to one thread. */
final class Program {
  final Child child;
  final Tenant tenant;

  /** The lease that it was started under; its tenant may have another one later. */
  final String lease;

  /**
   * The leases that it enters beside its own: one for good, one that it leaves and enters again.
   */
  final List<String> furtherLeases;

  /** Stopped, and not yet told to go on. */
  boolean stopped;

  /** What it took lately is not its own doing: it was stopped, or its lease has ended. */
  boolean excused = true;

  /** For those that launch without an end: kernels so far. */
  long kernels;

  /** How many processes that it forked were ended by their alarm. */
  long forkedHung;

  Program(Child child, Tenant tenant) {
    this(child, tenant, List.of());
  }

  Program(Child child, Tenant tenant, List<String> furtherLeases) {
    this.child = child;
    this.tenant = tenant;
    this.lease = tenant.lease();
    this.furtherLeases = furtherLeases;
  }

  /** The share of the tenant that it works for, at least; 0: not known to be any. */
  int leastPercent() {
    return furtherLeases.isEmpty() ? tenant.percent : 0;
  }

  @Override
  public String toString() {
    return child + " of " + tenant.name;
  }
}
