package dev.vgpu;

import java.io.IOException;
import java.time.Duration;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.concurrent.Callable;
import java.util.concurrent.CompletableFuture;
import org.jspecify.annotations.Nullable;

/**
 * A lease on part of one GPU: a compute share, a memory quota, a policy and a class. Code runs
 * under it when it is given to {@link #call}, {@link #run} or {@link #submit}, or runs between
 * {@link #enter} and {@link GpuTurn#close}.
 *
 * <p>Safe for use by several threads, virtual ones too. A call waits until the tenant has its turn,
 * until fewer than {@link VirtualGpuRequest#maxConcurrentCalls()} run, and until its stated memory
 * fits the quota. Waiting calls are served in order of class, then arrival. None is overtaken for
 * ever. A call made inside a call of the same virtual GPU on the same thread runs at once. We
 * implement this interface; it may gain methods.
 */
public interface VirtualGpu extends AutoCloseable {
  /** {@return the name that is unique within the pool, for example {@code embed-3}} */
  String id();

  /** {@return the GPU that it was cut from, or the first of them} */
  PhysicalGpu gpu();

  /** {@return the GPUs that it was cut from, in the order of {@link GpuPool#gpus()}} */
  default List<PhysicalGpu> gpus() {
    return List.of(gpu());
  }

  /** {@return the terms that are granted now} */
  VirtualGpuRequest request();

  /** {@return the capabilities that its backend enforces} */
  Capabilities capabilities();

  /**
   * Runs a call under this virtual GPU, on this thread. Blocks until it may start, without bound.
   *
   * @param <T> the type of the result
   * @param call the work
   * @return its result
   * @throws InterruptedException if this thread is interrupted before the call starts
   * @throws IllegalStateException if the virtual GPU is closed, before or while this waits
   * @throws Exception any exception of the call; its turn is released
   */
  <T extends @Nullable Object> T call(Callable<? extends T> call) throws Exception;

  /**
   * Runs a call under this virtual GPU, on this thread.
   *
   * @param <T> the type of the result
   * @param call the work
   * @param options how it is run; {@link CallOptions#maxPreemptions()} has no meaning here
   * @return its result
   * @throws GpuTimeoutException if it could not start within its timeout
   * @throws GpuCapacityException if its memory budget is larger than the quota can ever give
   * @throws InterruptedException if this thread is interrupted before the call starts
   * @throws IllegalStateException if the virtual GPU is closed, before or while this waits
   * @throws Exception any exception of the call; its turn is released
   */
  <T extends @Nullable Object> T call(Callable<? extends T> call, CallOptions options)
      throws Exception;

  /**
   * Runs a call that may be cancelled for a more urgent tenant and run again, on this thread.
   *
   * @param <T> the type of the result
   * @param call the work
   * @return its result
   * @throws InterruptedException if this thread is interrupted before an attempt starts
   * @throws IllegalStateException if the virtual GPU is closed, before or while this waits
   * @throws Exception any exception of an attempt that was not cancelled
   */
  <T extends @Nullable Object> T call(PreemptibleCall<? extends T> call) throws Exception;

  /**
   * Runs a call that may be cancelled for a more urgent tenant and run again, on this thread.
   *
   * @param <T> the type of the result
   * @param call the work
   * @param options how it is run
   * @return its result
   * @throws GpuTimeoutException if its first attempt could not start within its timeout
   * @throws GpuCapacityException if its memory budget is larger than the quota can ever give
   * @throws InterruptedException if this thread is interrupted before an attempt starts
   * @throws IllegalStateException if the virtual GPU is closed, before or while this waits
   * @throws Exception any exception of an attempt that was not cancelled
   */
  <T extends @Nullable Object> T call(PreemptibleCall<? extends T> call, CallOptions options)
      throws Exception;

  /**
   * Runs work without a result under this virtual GPU, on this thread.
   *
   * @param work the work
   * @throws InterruptedException if this thread is interrupted before the work starts
   * @throws IllegalStateException if the virtual GPU is closed, before or while this waits
   */
  void run(Runnable work) throws InterruptedException;

  /**
   * Runs work without a result under this virtual GPU, on this thread.
   *
   * @param work the work
   * @param options how it is run
   * @throws GpuTimeoutException if it could not start within its timeout
   * @throws GpuCapacityException if its memory budget is larger than the quota can ever give
   * @throws InterruptedException if this thread is interrupted before the work starts
   * @throws IllegalStateException if the virtual GPU is closed, before or while this waits
   */
  void run(Runnable work, CallOptions options) throws InterruptedException;

  /**
   * Runs a call under this virtual GPU, on a daemon thread of the pool. Never blocks: a call that
   * cannot start yet is queued. At most {@link VirtualGpuRequest#maxConcurrentCalls()} threads, and
   * at most as many as the machine has processors, work for one virtual GPU.
   *
   * @param <T> the type of the result
   * @param call the work
   * @return its result to come; fails with the exception that {@link #call(Callable)} would throw.
   *     Cancelling it before the call starts drops the call
   * @throws IllegalStateException if the virtual GPU is closed
   */
  <T extends @Nullable Object> CompletableFuture<T> submit(Callable<? extends T> call);

  /**
   * Runs a call under this virtual GPU, on a daemon thread of the pool, as {@link
   * #submit(Callable)} does.
   *
   * @param <T> the type of the result
   * @param call the work
   * @param options how it is run; a timeout counts from when a thread takes the call up
   * @return its result to come
   * @throws IllegalStateException if the virtual GPU is closed
   */
  <T extends @Nullable Object> CompletableFuture<T> submit(
      Callable<? extends T> call, CallOptions options);

  /**
   * Begins to use the GPU, for code that is not a lambda. Blocks until it may, without bound.
   *
   * <p>Where this was acquired with a part of the GPU in space for this JVM ({@link
   * VirtualGpuRequest.Builder#require(Capabilities.Compute) SPATIAL}, {@link
   * Capabilities.Scope#THIS_JVM}) and the JVM is {@linkplain #attachThisJvm under it}, the calling
   * thread's CUDA context is, until the turn is closed, one that has so many of the GPU's
   * processors to itself as its share says, rounded down to whole groups of them (at least one; 8
   * processors on compute capability 9.0). It waits for no turn. The context that the thread had
   * before comes back afterwards. {@link #call}, {@link #run} and {@link #submit} do the same.
   *
   * @return the turn; close it with try-with-resources
   * @throws InterruptedException if this thread is interrupted while it waits
   * @throws IllegalStateException if the virtual GPU is closed, before or while this waits
   */
  GpuTurn enter() throws InterruptedException;

  /**
   * Begins to use the GPU.
   *
   * @param options how; {@link CallOptions#maxPreemptions()} has no meaning here
   * @return the turn; close it with try-with-resources
   * @throws GpuTimeoutException if it could not begin within its timeout
   * @throws GpuCapacityException if its memory budget is larger than the quota can ever give
   * @throws InterruptedException if this thread is interrupted while it waits
   * @throws IllegalStateException if the virtual GPU is closed, before or while this waits
   */
  GpuTurn enter(CallOptions options) throws InterruptedException;

  /**
   * Starts a program under this virtual GPU, unmodified: its memory stays within the quota, its
   * work on the GPU takes turns. The program may start others; they are under it too. Whether it
   * can be put under a virtual GPU (a statically linked one cannot) is checked where that can be
   * seen before it starts.
   *
   * <p>{@link #close()} does not end it: the virtual GPU is given back when its last program has
   * ended.
   *
   * @param program the program; its environment is added to, and all else stays as it is
   * @return the process, which belongs to the caller
   * @throws IOException if it cannot be started
   * @throws IllegalStateException if the virtual GPU is closed
   * @throws VgpuException if no backend can put programs under this virtual GPU here, or not this
   *     one; the message says why. Under {@link FailureMode#OPEN} it is started without, and logged
   */
  Process start(ProcessBuilder program) throws IOException;

  /**
   * {@return the environment variables that put a program under this virtual GPU, for launchers
   * that {@link #start} cannot call} {@code LD_PRELOAD} is among them: the program's own entries
   * already must be kept behind it.
   *
   * @throws IllegalStateException if the virtual GPU is closed
   * @throws VgpuException if no backend can put programs under this virtual GPU here
   */
  Map<String, String> environment();

  /**
   * {@return the variables, mounts and devices that a container needs to run under this virtual
   * GPU} Its programs see no other tenant's files. They must be allowed to open those of the run
   * directory: the container's user is this process's, or in its group where the run directory is a
   * group's.
   *
   * <p>The virtual GPU is given back when it is closed and no program of a container is attached
   * any more; one that starts later is refused.
   *
   * @throws IllegalStateException if the virtual GPU is closed
   * @throws VgpuException if no backend can put containers under this virtual GPU here
   */
  ContainerSpec containerSpec();

  /**
   * Puts this JVM under this virtual GPU: whatever CUDA library is loaded into it later (ONNX
   * Runtime's, JCuda's, DJL's) finds the hook where it looks for the driver. The first time in the
   * life of a JVM this must come before anything has loaded {@code libcuda.so.1}. Blocks some
   * milliseconds.
   *
   * <p>A JVM may be under several virtual GPUs: a thread works for the one that it is inside
   * ({@link #call}, {@link #run}, {@link #submit}, {@link #enter()}), and outside of all for the
   * first that is open. Its allocations are charged there, whichever thread frees them; streams and
   * graphs belong to the virtual GPU in which they were made, whichever thread launches. Once a JVM
   * is under one, others follow when they are first used. Their calls need no turn any more: each
   * kernel waits for its own, so a turn may be held for as long as one likes.
   *
   * <p>A thread is bound to the virtual GPU that it is inside. A thread that it starts is not. A
   * virtual thread has no thread of its own that could be bound, and is refused; {@link #submit}
   * runs its calls on threads that can. Closing a virtual GPU takes this JVM from under it: what is
   * left of it can only be freed.
   *
   * <p>For a part of the GPU in space, CUDA begins here, and the context that has it is made; it
   * goes when the virtual GPU is closed. One process at a time can have such parts of a GPU.
   *
   * @throws IllegalStateException if the driver is loaded already, or this JVM is under this
   *     virtual GPU already, or it is closed
   * @throws VgpuException if it cannot; the message says why, for example that the driver is older
   *     than CUDA 12.4 or that the processors are taken
   */
  void attachThisJvm();

  /**
   * {@return whether this much of the quota is free now, after running budgets and reservations} To
   * ask and take in one step, use {@link #tryReserve}.
   *
   * @param size how much is needed
   */
  boolean hasHeadroom(MemorySize size);

  /**
   * Sets memory aside out of the quota, for example before a model's weights are loaded.
   *
   * @param size above 0
   * @return the reservation, or empty if that much is not free now
   * @throws IllegalArgumentException if {@code size} is 0
   * @throws IllegalStateException if the virtual GPU is closed
   */
  Optional<MemoryReservation> tryReserve(MemorySize size);

  /**
   * Sets the handler that is asked to free memory when the GPU's memory runs short. Replaces the
   * handler before. Never asked while this is {@link PreemptionClass#ONLINE}.
   *
   * @param handler frees memory that can be spared
   */
  void onReclaim(ReclaimHandler handler);

  /** {@return the use until now; still answers after {@link #close()}} */
  GpuUsage usage();

  /**
   * Replaces the granted terms: share, policy, class, quota, bound on calls. The GPUs, the name and
   * the backend stay. When it fails, everything stays as it was.
   *
   * @param request the terms from now on; make them from {@link #request()}{@code .toBuilder()}
   * @throws GpuCapacityException if it does not fit beside the others, or if less memory is asked
   *     than running calls and reservations hold
   * @throws IllegalArgumentException if it names another GPU, or demands other capabilities
   * @throws IllegalStateException if the virtual GPU is closed
   */
  void resize(VirtualGpuRequest request);

  /**
   * Suspends all work under this virtual GPU, within a minute or not at all: as {@link
   * #suspend(Duration)}.
   *
   * @throws GpuSuspendException if one of its processes cannot be suspended, or not in time
   * @throws IllegalStateException if the virtual GPU is closed
   */
  default void suspend() {
    suspend(Duration.ofMinutes(1));
  }

  /**
   * Suspends all work under this virtual GPU, or none of it: the memory of its processes moves to
   * that of the host, and is others' meanwhile; their work, their allocations and new calls of
   * {@link #call} and the like wait. Programs notice nothing but that. Quota and share stay. Until
   * {@link #resume}; nothing happens if it is suspended already, but that memory reclaim will not
   * let it go on by itself any more. Blocks until it is done; not from within a call of this
   * virtual GPU, which would wait for itself.
   *
   * <p>Processes with managed memory, with memory shared between processes (IPC) and under MPS
   * cannot be suspended by the driver.
   *
   * @param timeout how long it may take, above 0; undoing it, where it fails, comes on top
   * @throws GpuSuspendException if one of its processes cannot be suspended, or not in time; all go
   *     on as before, or the message says which does not
   * @throws IllegalStateException if the virtual GPU is closed
   */
  void suspend(Duration timeout);

  /**
   * Resumes all suspended work, within a minute or not at all: as {@link #resume(Duration)}.
   *
   * @throws GpuSuspendException if there is no room for its memory, or not in time
   * @throws IllegalStateException if the virtual GPU is closed
   */
  default void resume() {
    resume(Duration.ofMinutes(1));
  }

  /**
   * Resumes all work that {@link #suspend} or memory reclaim suspended, or none of it. Nothing
   * happens if it is not suspended. Blocks until it is done.
   *
   * @param timeout how long it may take, above 0
   * @throws GpuSuspendException if there is no room for its memory, or not in time; it is suspended
   *     still
   * @throws IllegalStateException if the virtual GPU is closed
   */
  void resume(Duration timeout);

  /** {@return whether {@link #close()} was called} */
  boolean isClosed();

  /**
   * Gives everything back. Waiting calls fail with {@link IllegalStateException}; running calls end
   * by themselves, and their turn is passed on only then. Never blocks, never throws; a second call
   * does nothing.
   */
  @Override
  void close();
}
