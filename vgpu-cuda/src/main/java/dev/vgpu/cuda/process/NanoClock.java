package dev.vgpu.cuda.process;

/** The time. The only place that reads a clock; tests put their own in its place. */
public interface NanoClock {
  /** The machine's clock: {@code CLOCK_MONOTONIC}, as the hook reads it. */
  NanoClock SYSTEM = System::nanoTime;

  /** {@return nanoseconds since some fixed moment; never decreases} */
  long nanoTime();
}
