package dev.vgpu.core;

import java.time.Instant;

/** The time. The only place that reads a clock; tests put their own in its place. */
public interface NanoClock {
  /** The machine's clock. */
  NanoClock SYSTEM =
      new NanoClock() {
        @Override
        public long nanoTime() {
          return System.nanoTime();
        }

        @Override
        public Instant now() {
          return Instant.now();
        }
      };

  /** {@return nanoseconds since some fixed moment; never decreases} */
  long nanoTime();

  /** {@return the time of day} */
  Instant now();
}
