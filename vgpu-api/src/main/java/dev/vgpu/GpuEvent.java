package dev.vgpu;

import java.time.Instant;
import java.util.List;

/**
 * Something that happened in a pool. More kinds may come, so a {@code switch} needs a {@code
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
   * {@return the {@link VirtualGpu#id()} of the virtual GPU that it happened to; empty if it
   * happened to a whole GPU or pool}
   */
  String virtualGpu();

  /**
   * A virtual GPU was granted.
   *
   * @param at when
   * @param virtualGpu which one
   * @param gpu the GPU that it was cut from
   * @param request the granted terms
   */
  record Acquired(Instant at, String virtualGpu, GpuId gpu, VirtualGpuRequest request)
      implements GpuEvent {}

  /**
   * A request was refused, or gave up waiting. {@code virtualGpu} is the name that it asked for.
   *
   * @param at when
   * @param virtualGpu the name in the request
   * @param request the request
   * @param reason what was missing, and its holders
   */
  record Refused(Instant at, String virtualGpu, VirtualGpuRequest request, String reason)
      implements GpuEvent {}

  /**
   * A virtual GPU's request was replaced by another.
   *
   * @param at when
   * @param virtualGpu which one
   * @param before the terms until now
   * @param after the terms from now on
   */
  record Resized(Instant at, String virtualGpu, VirtualGpuRequest before, VirtualGpuRequest after)
      implements GpuEvent {}

  /**
   * A virtual GPU lost its turn to a more urgent one, or gave way to it by itself: that of an
   * offline one's processes that found the express lane taken, told of each thread. When the same
   * one takes the turn of the same other again and again, the first time is told at once, and then
   * each second how often.
   *
   * @param at when; the last time
   * @param virtualGpu the one that lost the turn
   * @param by the virtual GPU that arrived
   * @param cancelledCalls how many running calls were asked to end
   * @param times how often; at least 1
   */
  record Preempted(Instant at, String virtualGpu, String by, int cancelledCalls, long times)
      implements GpuEvent {}

  /**
   * Allocations of a virtual GPU's processes were refused. Told once a second at most.
   *
   * @param at when it was noticed
   * @param virtualGpu the one whose processes they were
   * @param count how many, since this was told last
   * @param reason the limit that they would have exceeded
   */
  record AllocationDenied(Instant at, String virtualGpu, long count, String reason)
      implements GpuEvent {}

  /**
   * A process under a virtual GPU reported values that cannot be true. The seat uses possible ones.
   *
   * @param at when it was noticed
   * @param virtualGpu the process's virtual GPU
   * @param reason the reported value, and the one taken instead
   */
  record SuspectReport(Instant at, String virtualGpu, String reason) implements GpuEvent {}

  /**
   * A service that the processes of a virtual GPU need failed and was restarted, for example the
   * MPS server that several virtual GPUs share; its processes may have failed with it. Or, while
   * there were none, its MIG instance was moved by {@link GpuPool#makeRoom}: programs need its
   * environment anew.
   *
   * @param at when it was noticed
   * @param virtualGpu the one whose processes were in its reach
   * @param reason the failure, and all virtual GPUs in its reach
   */
  record Disturbed(Instant at, String virtualGpu, String reason) implements GpuEvent {}

  /**
   * The tenants of a GPU that have work share it in another way from now on. Told once a second at
   * most. {@code virtualGpu} is empty.
   *
   * @param at when it was noticed
   * @param virtualGpu empty
   * @param gpu which GPU
   * @param mode how it is shared now
   * @param reason why
   */
  record SharingChanged(Instant at, String virtualGpu, GpuId gpu, SharingMode mode, String reason)
      implements GpuEvent {}

  /**
   * The use cannot be written down. This process keeps it until writing is possible again. {@code
   * virtualGpu} is empty.
   *
   * @param at when it was noticed
   * @param virtualGpu empty
   * @param reason the file that cannot be written, and the remedy
   */
  record MeteringFailed(Instant at, String virtualGpu, String reason) implements GpuEvent {}

  /**
   * A {@link PreemptibleCall#cancel()} threw, or did not return in time.
   *
   * @param at when
   * @param virtualGpu the call's virtual GPU
   * @param reason the failure
   */
  record CancelFailed(Instant at, String virtualGpu, String reason) implements GpuEvent {}

  /**
   * A virtual GPU was not closed and became unreachable; it was closed for its owner.
   *
   * @param at when
   * @param virtualGpu which one
   */
  record Leaked(Instant at, String virtualGpu) implements GpuEvent {}

  /**
   * A virtual GPU was closed, and its part is free again.
   *
   * @param at when
   * @param virtualGpu which one
   * @param usage its use in all
   */
  record Closed(Instant at, String virtualGpu, GpuUsage usage) implements GpuEvent {}

  /**
   * The owner of a virtual GPU was asked to free memory, because the GPU's runs short.
   *
   * @param at when
   * @param virtualGpu which one
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
   * @param virtualGpu which one
   * @param freed the memory that was moved
   * @param reason the shortage, and why it was this one
   */
  record Suspended(Instant at, String virtualGpu, MemorySize freed, String reason)
      implements GpuEvent {}

  /**
   * The processes of a virtual GPU go on: their memory is on the GPU again.
   *
   * @param at when
   * @param virtualGpu which one
   * @param reason why now
   */
  record Resumed(Instant at, String virtualGpu, String reason) implements GpuEvent {}

  /**
   * The processes of a virtual GPU were told to end (SIGTERM), or killed, to get their memory back.
   *
   * @param at when
   * @param virtualGpu which one
   * @param processes which ones, by their ids
   * @param reason the shortage, why it was this one, and why nothing gentler helped
   */
  record EndedByReclaim(Instant at, String virtualGpu, List<Long> processes, String reason)
      implements GpuEvent {
    /** Copies the list. */
    public EndedByReclaim {
      processes = List.copyOf(processes);
    }
  }

  /**
   * A tenant whose memory was reclaimed may not start again yet. {@code virtualGpu} is the name
   * that it asked for.
   *
   * @param at when
   * @param virtualGpu the name in the request
   * @param reason until when
   */
  record HeldBack(Instant at, String virtualGpu, String reason) implements GpuEvent {}

  /**
   * A GPU was lost, came back, or is faulty. Told once for the GPU, with an empty {@code
   * virtualGpu}, and once for each virtual GPU that is cut from it.
   *
   * @param at when it was noticed
   * @param virtualGpu the one on that GPU, or empty
   * @param gpu which GPU
   * @param health how it is from now on
   * @param reason why
   */
  record HealthChanged(Instant at, String virtualGpu, GpuId gpu, GpuHealth health, String reason)
      implements GpuEvent {}

  /**
   * A GPU's driver told of a fault that does not change its health: a program's own, as a rule.
   * {@code virtualGpu} is empty: the driver does not tell whose it was.
   *
   * @param at when it was noticed
   * @param virtualGpu empty
   * @param gpu which GPU
   * @param reason which fault, with the driver's number of it
   */
  record GpuFault(Instant at, String virtualGpu, GpuId gpu, String reason) implements GpuEvent {}
}
