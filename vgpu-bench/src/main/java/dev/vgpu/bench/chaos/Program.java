package dev.vgpu.bench.chaos;

import dev.vgpu.bench.harness.Child;

/** A program under a virtual GPU, and what was done to it. Confined to one thread. */
final class Program {
  final Child child;
  final Tenant tenant;

  /** Stopped, and not yet told to go on. */
  boolean stopped;

  /** What it took lately is not its own doing: it was stopped, or its lease has ended. */
  boolean excused = true;

  /** For those that launch without an end: kernels so far. */
  long kernels;

  Program(Child child, Tenant tenant) {
    this.child = child;
    this.tenant = tenant;
  }

  @Override
  public String toString() {
    return child + " of " + tenant.name;
  }
}
