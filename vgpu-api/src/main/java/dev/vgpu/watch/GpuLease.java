package dev.vgpu.watch;

import dev.vgpu.request.Capabilities;
import dev.vgpu.request.GpuId;
import dev.vgpu.request.MemorySize;
import dev.vgpu.request.VirtualGpuRequest;
import java.util.List;
import java.util.Optional;

/**
 * A virtual GPU as others see it: who holds which part of a GPU, and on what terms. An immutable
 * snapshot. May gain methods.
 */
public interface GpuLease {
  /** {@return the name, unique within the pool, for example {@code embed-3}} */
  String id();

  /** {@return the GPU that it was cut from; the first one if there are several} */
  GpuId gpu();

  /**
   * {@return the GPUs that it was cut from, {@link #gpu()} first; one, unless it asked for more}
   */
  default List<GpuId> gpus() {
    return List.of(gpu());
  }

  /** {@return the granted terms} */
  VirtualGpuRequest request();

  /** {@return the id of the process that holds it} */
  long pid();

  /**
   * {@return its part of the GPU's time, in percent, when every tenant that divides the GPU with it
   * has work: its share or, for best effort, an equal part of the time that the guaranteed shares
   * leave} Online and nearline tenants divide the GPU together; offline tenants divide it among
   * themselves.
   */
  double entitledPercent();

  /** {@return the ids of the processes under it, each in its own pid namespace} */
  List<Long> processes();

  /**
   * {@return whether its processes are suspended: their memory is off the GPU, their work waits}
   */
  default boolean isSuspended() {
    return false;
  }

  /**
   * {@return the part of {@link GpuUsage#memoryUsed()} that is in host memory because it is
   * suspended; it still counts against the quota}
   */
  default MemorySize memorySuspended() {
    return isSuspended() ? usage().memoryUsed() : MemorySize.ZERO;
  }

  /**
   * {@return the name of the backend that enforces it, or that will once it runs programs; empty if
   * none is chosen, and its calls take turns inside their JVM}
   */
  default Optional<String> backend() {
    return Optional.empty();
  }

  /**
   * {@return how many driver calls of its processes were passed through, neither gated nor counted,
   * because the backend does not know them} If it is above 0, some of their work may be bound by
   * neither share nor quota.
   */
  default long passedThrough() {
    return 0;
  }

  /**
   * {@return where the programs under it can be interrupted now for a more urgent tenant: the
   * weakest of them decides; empty if there are none} Unlike {@link
   * dev.vgpu.VirtualGpu#capabilities()}, this includes what is known only at run time, such as
   * whether the installed driver can stop running work.
   */
  default Optional<Capabilities.Preemption> preemption() {
    return Optional.empty();
  }

  /**
   * {@return why the programs under it cannot be interrupted inside a kernel, in words; empty if
   * they can, or if there are none}
   */
  default Optional<String> preemptionReason() {
    return Optional.empty();
  }

  /** {@return its use at the time of the snapshot} */
  GpuUsage usage();

  /**
   * {@return why work under it cannot be relied on, in words, for example because one of its GPUs
   * is lost or faulty; empty if no problem is known}
   */
  default Optional<String> impaired() {
    return Optional.empty();
  }
}
