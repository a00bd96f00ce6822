package dev.vgpu.cuda.process;

/** The time source, and the only place that reads a clock. Tests supply their own. */
public interface NanoClock {
  /** The machine's clock: {@code CLOCK_MONOTONIC}, as the hook reads it. */
  NanoClock SYSTEM = System::nanoTime;

  /** {@return nanoseconds since some fixed point; never decreases} */
  long nanoTime();
}
