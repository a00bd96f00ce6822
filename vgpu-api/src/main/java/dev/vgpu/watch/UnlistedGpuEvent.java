package dev.vgpu.watch;

import java.time.Instant;

/** Never created. Because callers cannot name it, their {@code switch} needs a {@code default}. */
record UnlistedGpuEvent(Instant at, String virtualGpu) implements GpuEvent {}
