package dev.vgpu.core;

import java.time.Instant;

/** A source of time. The only place that reads a clock; tests supply their own. */
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

  /** {@return nanoseconds since a fixed, arbitrary moment; never decreases} */
  long nanoTime();

  /** {@return the time of day} */
  Instant now();
}
