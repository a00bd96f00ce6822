package dev.vgpu;

import dev.vgpu.spi.GpuPoolProvider;
import java.time.Duration;
import java.time.Instant;
import java.util.Iterator;
import java.util.List;
import java.util.Optional;
import java.util.ServiceLoader;

/**
 * The GPUs of this node and the virtual GPUs cut from them. Safe for use by several threads. We
 * implement this interface; it may gain methods.
 *
 * <p>All pools of a node that meet in one run directory share the same GPUs and one scheduler,
 * whichever processes opened them ({@link GpuPoolOptions.Scope}); so do those opened twice in one
 * JVM. Closing one closes only the virtual GPUs that were acquired through it.
 */
public interface GpuPool extends AutoCloseable {
  /**
   * Opens a pool over the GPUs that the installed providers find: those of the NVIDIA driver, else
   * emulated ones if {@code vgpu-emulator} is on the class path. Where there are none, one device
   * named {@code host} stands for this machine's CPU, and the log says so.
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
   * @param options how it works
   * @return the pool; close it at the end
   * @throws GpuDriverException if a provider's driver fails
   * @throws IllegalStateException if no implementation (vgpu-core) is on the class path, or if a
   *     GPU is already managed in this JVM with other options
   */
  static GpuPool open(GpuPoolOptions options) {
    // Beside this class first: the thread may be one that sees another copy of vgpu.
    ClassLoader own = GpuPool.class.getClassLoader();
    Iterator<GpuPoolProvider> found = ServiceLoader.load(GpuPoolProvider.class, own).iterator();
    if (!found.hasNext()) {
      found = ServiceLoader.load(GpuPoolProvider.class).iterator();
    }
    if (!found.hasNext()) {
      throw new IllegalStateException(
          "no implementation of vgpu found: add dev.vgpu:vgpu-core to the run-time class path");
    }
    return found.next().open(options);
  }

  /** {@return the GPUs, in the order in which their providers gave them} */
  List<PhysicalGpu> gpus();

  /** {@return the leases now, on all GPUs, whichever pool acquired them} */
  List<GpuLease> leases();

  /** {@return each provider and backend, available or why not} */
  List<BackendStatus> backends();

  /** {@return how each GPU is shared now, in the order of {@link #gpus()}} */
  List<GpuState> states();

  /**
   * {@return the drivers' readings of the GPUs now, in the order of {@link #gpus()}; a GPU without
   * readings is left out} Read in this process, whichever process holds the seat.
   */
  List<GpuReading> readings();

  /**
   * {@return the use of each virtual GPU from a moment on, by any process and whether or not it is
   * closed, in the order in which they were acquired} Reads the records in the run directory. A
   * pool of this JVM alone knows the use since it was opened.
   *
   * @param since the moment; {@link Instant#EPOCH}: all that is kept
   */
  List<UsageRecord> usageSince(Instant since);

  /**
   * {@return the latest events, the oldest first; the last few hundred since the seat was taken}
   * For events from now on, {@link #listen}.
   */
  List<GpuEvent> recentEvents();

  /**
   * Cuts a virtual GPU. Does not wait.
   *
   * @param request the request
   * @return the virtual GPU; close it at the end
   * @throws GpuCapacityException if it does not fit, or if others wait in front of it; says what
   *     was free and by whom the rest is held
   * @throws IllegalArgumentException if it could never fit: more memory than any GPU has, or a GPU
   *     that is not in this pool
   * @throws VgpuException if no backend can enforce its demands
   * @throws IllegalStateException if the pool is closed
   */
  VirtualGpu acquire(VirtualGpuRequest request);

  /**
   * Cuts a virtual GPU, waiting until it fits. Waiting requests are served in order of class, then
   * arrival; a request that was overtaken {@code 64} times is overtaken no more. One that takes
   * nothing that the first in line may need is served before it.
   *
   * @param request the request
   * @param timeout how long to wait at most; 0: not at all
   * @return the virtual GPU, or empty if it did not fit in time
   * @throws InterruptedException if this thread is interrupted while it waits
   * @throws IllegalArgumentException if it could never fit, or if the timeout is negative
   * @throws VgpuException if no backend can enforce its demands
   * @throws IllegalStateException if the pool is closed, before or while this waits
   */
  Optional<VirtualGpu> tryAcquire(VirtualGpuRequest request, Duration timeout)
      throws InterruptedException;

  /**
   * {@return why a request would be served as it would be, for each GPU and each backend: those of
   * one GPU together, GPUs in the order of {@link #gpus()}, backends in the order of their cost}
   * Changes nothing. The answer holds for this moment.
   *
   * @param request the request to judge
   * @throws IllegalStateException if the pool is closed
   */
  List<BackendChoice> explain(VirtualGpuRequest request);

  /**
   * Makes room for a request that finds none now though enough is free, by moving the MIG instances
   * of other virtual GPUs, whoever acquired them. To call this is to consent to that. Only virtual
   * GPUs under which nothing runs are moved: running work cannot be taken along. Of each that is
   * moved the instance is destroyed and made anew elsewhere on its GPU; a program that is started
   * with variables, or in a container, that were made out before finds its GPU gone, and the pool's
   * listeners are told of a {@link GpuEvent.Disturbed}. Nothing is set aside for the request:
   * another may be quicker.
   *
   * @param request the request that shall fit
   * @return the moved virtual GPUs, in words; empty if it fits as it is
   * @throws GpuCapacityException if no room can be made so
   * @throws VgpuException if the driver fails; virtual GPUs moved by then stay so
   * @throws IllegalStateException if the pool is closed
   */
  List<String> makeRoom(VirtualGpuRequest request);

  /**
   * Suspends a virtual GPU, whichever process acquired it: as {@link VirtualGpu#suspend(Duration)}.
   *
   * @param virtualGpu its {@link GpuLease#id()}
   * @param timeout how long it may take, above 0
   * @throws GpuSuspendException if one of its processes cannot be suspended, or not in time
   * @throws IllegalStateException if there is no such virtual GPU, or the pool is closed
   */
  void suspend(String virtualGpu, Duration timeout);

  /**
   * Lets a suspended virtual GPU go on, whichever process acquired it: as {@link
   * VirtualGpu#resume(Duration)}.
   *
   * @param virtualGpu its {@link GpuLease#id()}
   * @param timeout how long it may take, above 0
   * @throws GpuSuspendException if there is no room for its memory, or not in time
   * @throws IllegalStateException if there is no such virtual GPU, or the pool is closed
   */
  void resume(String virtualGpu, Duration timeout);

  /**
   * Tells a listener of events from now on.
   *
   * @param listener is told on a thread of the pool
   * @return close it to stop listening
   * @throws IllegalStateException if the pool is closed
   */
  Listening listen(GpuListener listener);

  /**
   * Closes every virtual GPU that was acquired through this pool. Waiting requests fail with {@link
   * IllegalStateException}. The last pool of this JVM on its GPUs waits for vgpu's threads to end,
   * for two seconds at most, unless a call still runs: then its class loader may be closed. Never
   * throws; a second call does nothing.
   */
  @Override
  void close();

  /** A listener's registration. Safe for use by several threads. */
  interface Listening extends AutoCloseable {
    /** Stops telling the listener. A second call does nothing. */
    @Override
    void close();
  }
}
