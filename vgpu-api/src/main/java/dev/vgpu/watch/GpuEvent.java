package dev.vgpu.watch;

import dev.vgpu.request.GpuId;
import dev.vgpu.request.MemorySize;
import dev.vgpu.request.VirtualGpuRequest;
import java.time.Instant;
import java.util.List;

/**
 * Something that happened in a pool. New kinds may be added, so a {@code switch} needs a {@code
 * default}.
 */
public sealed interface GpuEvent
    permits GpuEvent.Acquired,
        GpuEvent.Refused,
        GpuEvent.Resized,
        GpuEvent.Preempted,
        GpuEvent.CancelFailed,
        GpuEvent.AllocationDenied,
        GpuEvent.SuspectReport,
        GpuEvent.Disturbed,
        GpuEvent.SharingChanged,
        GpuEvent.MeteringFailed,
        GpuEvent.Leaked,
        GpuEvent.Closed,
        GpuEvent.ReclaimAsked,
        GpuEvent.Suspended,
        GpuEvent.Resumed,
        GpuEvent.EndedByReclaim,
        GpuEvent.HeldBack,
        GpuEvent.HealthChanged,
        GpuEvent.GpuFault,
        UnlistedGpuEvent {
  /** {@return when it happened} */
  Instant at();

  /**
   * {@return the {@link dev.vgpu.VirtualGpu#id()} of the virtual GPU concerned; empty if the event
   * concerns a whole GPU or pool}
   */
  String virtualGpu();

  /**
   * A virtual GPU was granted.
   *
   * @param at when
   * @param virtualGpu the virtual GPU
   * @param gpu the GPU that it was cut from
   * @param request the granted terms
   */
  record Acquired(Instant at, String virtualGpu, GpuId gpu, VirtualGpuRequest request)
      implements GpuEvent {}

  /**
   * A request was refused, or its wait timed out.
   *
   * @param at when
   * @param virtualGpu the name in the request
   * @param request the request
   * @param reason what was missing, and which tenants hold it
   */
  record Refused(Instant at, String virtualGpu, VirtualGpuRequest request, String reason)
      implements GpuEvent {}

  /**
   * The terms of a virtual GPU were replaced.
   *
   * @param at when
   * @param virtualGpu the virtual GPU
   * @param before the previous terms
   * @param after the new terms
   */
  record Resized(Instant at, String virtualGpu, VirtualGpuRequest before, VirtualGpuRequest after)
      implements GpuEvent {}

  /**
   * A virtual GPU lost its turn to a more urgent one, or yielded to it. A process of an offline
   * virtual GPU yields by itself when it finds the express lane taken; each thread that does so is
   * counted. If the same pair repeats, the first time is reported at once, and then the count once
   * a second.
   *
   * @param at when; for a count, the last time
   * @param virtualGpu the one that lost the turn
   * @param by the more urgent virtual GPU
   * @param cancelledCalls how many running calls were asked to end
   * @param times how many times this happened; at least 1
   */
  record Preempted(Instant at, String virtualGpu, String by, int cancelledCalls, long times)
      implements GpuEvent {}

  /**
   * Allocations by a virtual GPU's processes were refused. Reported at most once a second.
   *
   * @param at when it was noticed
   * @param virtualGpu the virtual GPU of these processes
   * @param count how many since the last report
   * @param reason the limit that they would have exceeded
   */
  record AllocationDenied(Instant at, String virtualGpu, long count, String reason)
      implements GpuEvent {}

  /**
   * A process under a virtual GPU reported values that cannot be true. The seat uses plausible
   * values instead.
   *
   * @param at when it was noticed
   * @param virtualGpu the process's virtual GPU
   * @param reason the reported value, and the one used instead
   */
  record SuspectReport(Instant at, String virtualGpu, String reason) implements GpuEvent {}

  /**
   * A service that the processes of a virtual GPU depend on failed and was restarted, for example
   * an MPS server that several virtual GPUs share. The processes may have failed with it. Also
   * reported when {@link dev.vgpu.GpuPool#makeRoom} moved the MIG instance of a virtual GPU without
   * processes; programs then need its new environment. Also reported when the virtual GPU's GPU was
   * stalled for a moment although it had work.
   *
   * @param at when it was noticed
   * @param virtualGpu the virtual GPU affected
   * @param reason the failure, and all virtual GPUs affected
   */
  record Disturbed(Instant at, String virtualGpu, String reason) implements GpuEvent {}

  /**
   * The tenants of a GPU that have work now share it in another way. Reported at most once a
   * second.
   *
   * @param at when it was noticed
   * @param virtualGpu empty
   * @param gpu the GPU
   * @param mode how it is shared now
   * @param reason why
   */
  record SharingChanged(Instant at, String virtualGpu, GpuId gpu, SharingMode mode, String reason)
      implements GpuEvent {}

  /**
   * The usage records cannot be written. This process keeps them in memory until writing works
   * again.
   *
   * @param at when it was noticed
   * @param virtualGpu empty
   * @param reason the file that cannot be written, and the remedy
   */
  record MeteringFailed(Instant at, String virtualGpu, String reason) implements GpuEvent {}

  /**
   * A {@link dev.vgpu.PreemptibleCall#cancel()} threw, or did not return in time.
   *
   * @param at when
   * @param virtualGpu the call's virtual GPU
   * @param reason the failure
   */
  record CancelFailed(Instant at, String virtualGpu, String reason) implements GpuEvent {}

  /**
   * A virtual GPU became unreachable without being closed. The pool closed it.
   *
   * @param at when
   * @param virtualGpu the virtual GPU
   */
  record Leaked(Instant at, String virtualGpu) implements GpuEvent {}

  /**
   * A virtual GPU was closed, and its part of the GPU is free again.
   *
   * @param at when
   * @param virtualGpu the virtual GPU
   * @param usage its total use
   */
  record Closed(Instant at, String virtualGpu, GpuUsage usage) implements GpuEvent {}

  /**
   * The owner of a virtual GPU was asked to free memory, because the GPU runs short of it.
   *
   * @param at when
   * @param virtualGpu the virtual GPU
   * @param wanted how much is missing on the GPU until the high watermark is free
   * @param reason the shortage
   */
  record ReclaimAsked(Instant at, String virtualGpu, MemorySize wanted, String reason)
      implements GpuEvent {}

  /**
   * The processes of a virtual GPU were suspended: their memory was moved off the GPU, and their
   * work waits.
   *
   * @param at when
   * @param virtualGpu the virtual GPU
   * @param freed the memory that was moved
   * @param reason the shortage, and why this virtual GPU was chosen
   */
  record Suspended(Instant at, String virtualGpu, MemorySize freed, String reason)
      implements GpuEvent {}

  /**
   * The processes of a virtual GPU were resumed: their memory is on the GPU again.
   *
   * @param at when
   * @param virtualGpu the virtual GPU
   * @param reason why now
   */
  record Resumed(Instant at, String virtualGpu, String reason) implements GpuEvent {}

  /**
   * The processes of a virtual GPU were sent SIGTERM, or killed, to get their memory back.
   *
   * @param at when
   * @param virtualGpu the virtual GPU
   * @param processes their process ids
   * @param reason the shortage, why this virtual GPU was chosen, and why nothing gentler helped
   */
  record EndedByReclaim(Instant at, String virtualGpu, List<Long> processes, String reason)
      implements GpuEvent {
    /** Copies the list. */
    public EndedByReclaim {
      processes = List.copyOf(processes);
    }
  }

  /**
   * A tenant whose memory was reclaimed may not start again yet.
   *
   * @param at when
   * @param virtualGpu the name in the request
   * @param reason the shortage, and why this tenant was chosen
   */
  record HeldBack(Instant at, String virtualGpu, String reason) implements GpuEvent {}

  /**
   * A GPU was lost, came back, or is faulty. Reported once for the GPU, with an empty {@code
   * virtualGpu}, and once for each virtual GPU that is cut from it.
   *
   * @param at when it was noticed
   * @param virtualGpu a virtual GPU on that GPU, or empty
   * @param gpu the GPU
   * @param health the new state
   * @param reason why
   */
  record HealthChanged(Instant at, String virtualGpu, GpuId gpu, GpuHealth health, String reason)
      implements GpuEvent {}

  /**
   * A GPU's driver reported a fault that does not change the GPU's health, usually a program's own
   * fault.
   *
   * @param at when it was noticed
   * @param virtualGpu empty: the driver does not say whose fault it was
   * @param gpu the GPU
   * @param reason the fault, with the driver's number for it
   */
  record GpuFault(Instant at, String virtualGpu, GpuId gpu, String reason) implements GpuEvent {}
}
