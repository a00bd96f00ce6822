package dev.vgpu;

import dev.vgpu.backend.BackendChoice;
import dev.vgpu.backend.BackendStatus;
import dev.vgpu.request.GpuId;
import dev.vgpu.request.GpuPart;
import dev.vgpu.request.VirtualGpuRequest;
import dev.vgpu.watch.GpuEvent;
import dev.vgpu.watch.GpuLease;
import dev.vgpu.watch.GpuListener;
import dev.vgpu.watch.GpuReading;
import dev.vgpu.watch.GpuState;
import dev.vgpu.watch.PhysicalGpu;
import dev.vgpu.watch.UsageRecord;
import java.time.Duration;
import java.time.Instant;
import java.util.Iterator;
import java.util.List;
import java.util.Optional;
import java.util.ServiceLoader;

/**
 * The GPUs of this node and the virtual GPUs cut from them.
 *
 * <p>Safe for use by several threads. Only vgpu implements this interface; it may gain methods.
 *
 * <p>All pools of a node that use the same run directory share the same GPUs and one scheduler,
 * whichever process opened them ({@link GpuPoolOptions.Scope}). The same holds for pools opened in
 * one JVM. Closing a pool closes only the virtual GPUs that were acquired through it.
 */
public interface GpuPool extends AutoCloseable {
  /**
   * Opens a pool over the GPUs that the installed providers find. These are the GPUs of the NVIDIA
   * driver. If there is no driver, they are emulated ones, provided that {@code vgpu-emulator} is
   * on the class path. If no provider finds a GPU, one device named {@code host} represents this
   * machine's CPU, and the log says so.
   *
   * @return the pool; close it at the end
   * @throws GpuDriverException if a provider's driver fails
   * @throws IllegalStateException if no implementation (vgpu-core) is on the class path
   */
  static GpuPool open() {
    return open(GpuPoolOptions.defaults());
  }

  /**
   * Opens a pool.
   *
   * @param options the pool's options
   * @return the pool; close it at the end
   * @throws GpuDriverException if a provider's driver fails
   * @throws IllegalStateException if no implementation (vgpu-core) is on the class path, or if a
   *     GPU is already managed in this JVM with other options
   */
  static GpuPool open(GpuPoolOptions options) {
    // Look beside this class first: the thread's context class loader may see another copy of vgpu.
    ClassLoader own = GpuPool.class.getClassLoader();
    Iterator<Provider> found = ServiceLoader.load(Provider.class, own).iterator();
    if (!found.hasNext()) {
      found = ServiceLoader.load(Provider.class).iterator();
    }
    if (!found.hasNext()) {
      throw new IllegalStateException(
          "no implementation of vgpu found: add dev.vgpu:vgpu-core to the run-time class path");
    }
    return found.next().open(options);
  }

  /** {@return the GPUs, in the order in which their providers listed them} */
  List<PhysicalGpu> gpus();

  /**
   * {@return the parts that a GPU can be divided into, whatever is in use: every profile at every
   * start, the smallest profile first; empty if the GPU is not divided} Such a GPU is in MIG mode.
   * Read in this process.
   *
   * @param gpu one of {@link #gpus()}
   * @throws IllegalArgumentException if it is none of them
   * @throws GpuDriverException if the driver fails
   */
  List<GpuPart> parts(GpuId gpu);

  /** {@return the current leases on all GPUs, whichever pool acquired them} */
  List<GpuLease> leases();

  /** {@return the status of each provider and backend: available, or why not} */
  List<BackendStatus> backends();

  /** {@return how each GPU is shared now, in the order of {@link #gpus()}} */
  List<GpuState> states();

  /**
   * {@return the drivers' current readings of the GPUs, in the order of {@link #gpus()}; a GPU
   * without readings is left out} The readings are taken in this process, whichever process holds
   * the seat.
   */
  List<GpuReading> readings();

  /**
   * {@return the use of each virtual GPU since a given moment, in the order of acquisition} The
   * result covers virtual GPUs of every process, open or closed. It is read from the records in the
   * run directory. A pool of this JVM alone knows only the use since it was opened.
   *
   * @param since the moment; {@link Instant#EPOCH} means all records that are kept
   */
  List<UsageRecord> usageSince(Instant since);

  /**
   * {@return the latest events, oldest first: the last few hundred since the seat was taken} For
   * future events, use {@link #listen}.
   */
  List<GpuEvent> recentEvents();

  /**
   * Acquires a virtual GPU. Does not wait.
   *
   * @param request the request
   * @return the virtual GPU; close it at the end
   * @throws GpuCapacityException if the request does not fit, or if other requests are waiting
   *     ahead of it; the message says what was free and who holds the rest
   * @throws IllegalArgumentException if the request could never fit: it asks for more memory than
   *     any GPU has, or names a GPU that is not in this pool
   * @throws VgpuException if no backend can enforce the demanded capabilities
   * @throws IllegalStateException if the pool is closed
   */
  VirtualGpu acquire(VirtualGpuRequest request);

  /**
   * Acquires a virtual GPU, and waits until it fits. Waiting requests are served in order of class,
   * then arrival. A request that has been overtaken {@code 64} times is not overtaken again. A
   * request is served early if it takes nothing that the first in line may need.
   *
   * @param request the request
   * @param timeout how long to wait at most; 0 does not wait
   * @return the virtual GPU, or empty if it did not fit in time
   * @throws InterruptedException if this thread is interrupted while it waits
   * @throws IllegalArgumentException if the request could never fit, or if the timeout is negative
   * @throws VgpuException if no backend can enforce the demanded capabilities
   * @throws IllegalStateException if the pool is closed, before or during the wait
   */
  Optional<VirtualGpu> tryAcquire(VirtualGpuRequest request, Duration timeout)
      throws InterruptedException;

  /**
   * {@return how the pool would serve a request and why, for each GPU and each backend} The result
   * is grouped by GPU, in the order of {@link #gpus()}; within a GPU, backends are ordered by cost.
   * Changes nothing. The answer holds only for this moment.
   *
   * @param request the request to judge
   * @throws IllegalStateException if the pool is closed
   */
  List<BackendChoice> explain(VirtualGpuRequest request);

  /**
   * Makes room for a request by moving MIG instances of other virtual GPUs, whoever acquired them.
   * Use it when enough of a GPU is free, but not in one piece. Calling this method consents to the
   * moves.
   *
   * <p>Only a virtual GPU under which nothing runs is moved, because running work cannot be moved
   * along. Its instance is destroyed and recreated elsewhere on its GPU. An environment or
   * container specification that was made for it earlier then names a GPU that no longer exists.
   * The pool's listeners receive a {@link GpuEvent.Disturbed}. Nothing is set aside for the
   * request: another request may take the room first.
   *
   * @param request the request to make room for
   * @return the moved virtual GPUs, in words; empty if the request fits already
   * @throws GpuCapacityException if no room can be made this way
   * @throws VgpuException if the driver fails; virtual GPUs that were already moved stay moved
   * @throws IllegalStateException if the pool is closed
   */
  List<String> makeRoom(VirtualGpuRequest request);

  /**
   * Suspends a virtual GPU, whichever process acquired it. See {@link
   * VirtualGpu#suspend(Duration)}.
   *
   * @param virtualGpu its {@link GpuLease#id()}
   * @param timeout how long the suspension may take; above 0, and at most five minutes: a longer
   *     one counts as that
   * @throws GpuSuspendException if one of its processes cannot be suspended, or not in time
   * @throws IllegalStateException if there is no such virtual GPU, or the pool is closed
   */
  void suspend(String virtualGpu, Duration timeout);

  /**
   * Resumes a suspended virtual GPU, whichever process acquired it. See {@link
   * VirtualGpu#resume(Duration)}.
   *
   * @param virtualGpu its {@link GpuLease#id()}
   * @param timeout how long the resumption may take; above 0, and at most five minutes: a longer
   *     one counts as that
   * @throws GpuSuspendException if there is no room for its memory, or not in time
   * @throws IllegalStateException if there is no such virtual GPU, or the pool is closed
   */
  void resume(String virtualGpu, Duration timeout);

  /**
   * Registers a listener for events from now on.
   *
   * @param listener called on a thread of the pool
   * @return the registration; close it to stop listening
   * @throws IllegalStateException if the pool is closed
   */
  Listening listen(GpuListener listener);

  /**
   * Closes every virtual GPU that was acquired through this pool. Waiting requests fail with {@link
   * IllegalStateException}. Never throws; a second call does nothing.
   *
   * <p>If this is the last pool of this JVM on its GPUs, the method waits up to two seconds for
   * vgpu's threads to end, unless a call is still running. Once they have ended, vgpu's class
   * loader may be closed.
   */
  @Override
  void close();

  /** A listener's registration. Safe for use by several threads. */
  interface Listening extends AutoCloseable {
    /** Stops calling the listener. A second call does nothing. */
    @Override
    void close();
  }

  /** The implementation behind {@link GpuPool#open()}. There is one: vgpu-core. */
  interface Provider {
    /**
     * Opens a pool.
     *
     * @param options the pool's options
     * @return the pool
     */
    GpuPool open(GpuPoolOptions options);
  }
}
