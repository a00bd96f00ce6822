package dev.vgpu;

import dev.vgpu.request.Capabilities;
import dev.vgpu.request.FailureMode;
import dev.vgpu.request.MemorySize;
import dev.vgpu.request.PreemptionClass;
import dev.vgpu.request.VirtualGpuRequest;
import dev.vgpu.watch.GpuUsage;
import dev.vgpu.watch.PhysicalGpu;
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
 * under it if it is passed to {@link #call}, {@link #run} or {@link #submit}, or if it runs between
 * {@link #enter} and {@link GpuTurn#close}.
 *
 * <p>Safe for use by several threads, including virtual threads. Only vgpu implements this
 * interface; it may gain methods.
 *
 * <p>A call starts once three conditions hold: the tenant has its turn, fewer than {@link
 * VirtualGpuRequest#maxConcurrentCalls()} calls run, and the call's stated memory fits the quota.
 * Waiting calls are served in order of class, then arrival; no call is overtaken forever. A call
 * made inside another call of the same virtual GPU on the same thread starts at once.
 */
public interface VirtualGpu extends AutoCloseable {
  /** {@return the name, unique within the pool, for example {@code embed-3}} */
  String id();

  /** {@return the GPU that it was cut from; the first one if there are several} */
  PhysicalGpu gpu();

  /** {@return the GPUs that it was cut from, in the order of {@link GpuPool#gpus()}} */
  default List<PhysicalGpu> gpus() {
    return List.of(gpu());
  }

  /** {@return the terms granted now} */
  VirtualGpuRequest request();

  /** {@return the capabilities that its backend enforces} */
  Capabilities capabilities();

  /**
   * Runs a call under this virtual GPU on the calling thread. Blocks without a time limit until the
   * call may start.
   *
   * @param <T> the type of the result
   * @param call the work
   * @return its result
   * @throws InterruptedException if this thread is interrupted before the call starts
   * @throws IllegalStateException if the virtual GPU is closed, before or during the wait
   * @throws Exception any exception of the call; the turn is released
   */
  <T extends @Nullable Object> T call(Callable<? extends T> call) throws Exception;

  /**
   * Runs a call under this virtual GPU on the calling thread.
   *
   * @param <T> the type of the result
   * @param call the work
   * @param options how to run it; {@link CallOptions#maxPreemptions()} has no meaning here
   * @return its result
   * @throws GpuTimeoutException if the call could not start within its timeout
   * @throws GpuCapacityException if the call's memory budget is larger than the quota can ever hold
   * @throws InterruptedException if this thread is interrupted before the call starts
   * @throws IllegalStateException if the virtual GPU is closed, before or during the wait
   * @throws Exception any exception of the call; the turn is released
   */
  <T extends @Nullable Object> T call(Callable<? extends T> call, CallOptions options)
      throws Exception;

  /**
   * Runs a call on the calling thread. The call may be cancelled for a more urgent tenant and run
   * again.
   *
   * @param <T> the type of the result
   * @param call the work
   * @return its result
   * @throws InterruptedException if this thread is interrupted before an attempt starts
   * @throws IllegalStateException if the virtual GPU is closed, before or during the wait
   * @throws Exception any exception of an attempt that was not cancelled
   */
  <T extends @Nullable Object> T call(PreemptibleCall<? extends T> call) throws Exception;

  /**
   * Runs a call on the calling thread. The call may be cancelled for a more urgent tenant and run
   * again.
   *
   * @param <T> the type of the result
   * @param call the work
   * @param options how to run it
   * @return its result
   * @throws GpuTimeoutException if the first attempt could not start within the timeout
   * @throws GpuCapacityException if the call's memory budget is larger than the quota can ever hold
   * @throws InterruptedException if this thread is interrupted before an attempt starts
   * @throws IllegalStateException if the virtual GPU is closed, before or during the wait
   * @throws Exception any exception of an attempt that was not cancelled
   */
  <T extends @Nullable Object> T call(PreemptibleCall<? extends T> call, CallOptions options)
      throws Exception;

  /**
   * Runs work without a result under this virtual GPU, on the calling thread.
   *
   * @param work the work
   * @throws InterruptedException if this thread is interrupted before the work starts
   * @throws IllegalStateException if the virtual GPU is closed, before or during the wait
   */
  void run(Runnable work) throws InterruptedException;

  /**
   * Runs work without a result under this virtual GPU, on the calling thread.
   *
   * @param work the work
   * @param options how to run it
   * @throws GpuTimeoutException if the work could not start within its timeout
   * @throws GpuCapacityException if the work's memory budget is larger than the quota can ever hold
   * @throws InterruptedException if this thread is interrupted before the work starts
   * @throws IllegalStateException if the virtual GPU is closed, before or during the wait
   */
  void run(Runnable work, CallOptions options) throws InterruptedException;

  /**
   * Runs a call under this virtual GPU on a daemon thread of the pool. Never blocks: a call that
   * cannot start yet is queued. The number of threads that work for one virtual GPU is at most
   * {@link VirtualGpuRequest#maxConcurrentCalls()}, and at most the number of the machine's
   * processors.
   *
   * @param <T> the type of the result
   * @param call the work
   * @return the future result; it fails with the exception that {@link #call(Callable)} would
   *     throw. Cancelling it before the call starts drops the call
   * @throws IllegalStateException if the virtual GPU is closed
   */
  <T extends @Nullable Object> CompletableFuture<T> submit(Callable<? extends T> call);

  /**
   * Runs a call under this virtual GPU on a daemon thread of the pool, as {@link #submit(Callable)}
   * does.
   *
   * @param <T> the type of the result
   * @param call the work
   * @param options how to run it; its timeout starts when a thread takes the call from the queue
   * @return its result to come
   * @throws IllegalStateException if the virtual GPU is closed
   */
  <T extends @Nullable Object> CompletableFuture<T> submit(
      Callable<? extends T> call, CallOptions options);

  /**
   * Begins to use the GPU, for code that is not a lambda. Blocks without a time limit until the
   * turn comes.
   *
   * <p>A virtual GPU can be a spatial part of the GPU for this JVM, if it was requested with {@link
   * VirtualGpuRequest.Builder#require(Capabilities.Compute) SPATIAL} and {@link
   * Capabilities.Scope#THIS_JVM}, and the JVM is {@linkplain #attachThisJvm under it}. Then there
   * is no wait for a turn. Until the turn is closed, the calling thread's CUDA context is one that
   * has multiprocessors to itself. Their number is the share, rounded down to whole groups (at
   * least one; 8 multiprocessors on compute capability 9.0). Afterwards the thread's previous
   * context is restored. {@link #call}, {@link #run} and {@link #submit} do the same.
   *
   * @return the turn; close it with try-with-resources
   * @throws InterruptedException if this thread is interrupted while it waits
   * @throws IllegalStateException if the virtual GPU is closed, before or during the wait
   */
  GpuTurn enter() throws InterruptedException;

  /**
   * Begins to use the GPU.
   *
   * @param options how to enter; {@link CallOptions#maxPreemptions()} has no meaning here
   * @return the turn; close it with try-with-resources
   * @throws GpuTimeoutException if the turn did not come within the timeout
   * @throws GpuCapacityException if the memory budget is larger than the quota can ever hold
   * @throws InterruptedException if this thread is interrupted while it waits
   * @throws IllegalStateException if the virtual GPU is closed, before or during the wait
   */
  GpuTurn enter(CallOptions options) throws InterruptedException;

  /**
   * Starts an unmodified program under this virtual GPU. Its memory stays within the quota, and its
   * GPU work takes turns. Child processes of the program are under the virtual GPU too. A program
   * that cannot be put under a virtual GPU, such as a statically linked one, is refused before it
   * starts, if that can be detected.
   *
   * <p>{@link #close()} does not end the program. After it, the lease is given back when the last
   * program has ended.
   *
   * @param program the program; variables are added to its environment, and nothing else changes
   * @return the process, which belongs to the caller
   * @throws IOException if the program cannot be started
   * @throws IllegalStateException if the virtual GPU is closed
   * @throws VgpuException if no backend can put programs, or this program, under this virtual GPU;
   *     the message says why. Under {@link FailureMode#OPEN} the program starts without
   *     enforcement, and a warning is logged
   */
  Process start(ProcessBuilder program) throws IOException;

  /**
   * {@return the environment variables that put a program under this virtual GPU, for launchers
   * other than {@link #start}} {@code LD_PRELOAD} is among them. If the program already has entries
   * there, they must be kept after this one.
   *
   * @throws IllegalStateException if the virtual GPU is closed
   * @throws VgpuException if no backend can put programs under this virtual GPU here
   */
  Map<String, String> environment();

  /**
   * {@return the variables, mounts and devices that a container needs to run under this virtual
   * GPU} Programs in the container see no other tenant's files. They must be allowed to open those
   * in the run directory: the container's user must be the user of this process, or, if the run
   * directory belongs to a group, a member of that group.
   *
   * <p>The lease is given back when the virtual GPU is closed and no program of a container is
   * attached. A program that starts later is refused.
   *
   * @throws IllegalStateException if the virtual GPU is closed
   * @throws VgpuException if no backend can put containers under this virtual GPU here
   */
  ContainerSpec containerSpec();

  /**
   * Puts this JVM under this virtual GPU. CUDA libraries that are loaded into the JVM later (ONNX
   * Runtime's, JCuda's, DJL's) then find the hook where they look for the driver. The first time in
   * a JVM, call this before anything has loaded {@code libcuda.so.1}. Blocks for some milliseconds.
   *
   * <p>A JVM may be under several virtual GPUs. Once it is under one, it is put under each other
   * one at its first use. A thread works for the virtual GPU that it is inside ({@link #call},
   * {@link #run}, {@link #submit}, {@link #enter()}). A thread inside none works for the first one
   * that is open. That virtual GPU is charged for the thread's allocations, whichever thread frees
   * them. Streams and graphs belong to the virtual GPU in which they were created, whichever thread
   * launches them. Calls no longer wait for a turn: each kernel waits for its own, so a turn may be
   * held for any length of time.
   *
   * <p>A thread is bound to the virtual GPU that it is inside; threads that it starts are not. A
   * virtual thread is refused, because it has no platform thread of its own to bind; use {@link
   * #submit}, which runs calls on platform threads. Closing a virtual GPU detaches this JVM from
   * it: what the JVM still holds of it can only be freed.
   *
   * <p>If the virtual GPU is a spatial part of the GPU, this method initialises CUDA and creates
   * the context that owns the part. The context is destroyed when the virtual GPU is closed. Only
   * one process at a time can have such parts of a GPU.
   *
   * @throws IllegalStateException if the driver is already loaded, if this JVM is already under
   *     this virtual GPU, or if the virtual GPU is closed
   * @throws VgpuException if the JVM cannot be put under it; the message says why, for example that
   *     the driver is older than CUDA 12.4 or that the multiprocessors are taken
   */
  void attachThisJvm();

  /**
   * {@return whether this much of the quota is free now, after running budgets and reservations} To
   * check and reserve in one step, use {@link #tryReserve}.
   *
   * @param size the amount needed
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
   * Sets the handler that is asked to free memory when the GPU runs short of it. Replaces the
   * previous handler. The handler is never called while the class is {@link
   * PreemptionClass#ONLINE}.
   *
   * @param handler frees memory that can be spared
   */
  void onReclaim(ReclaimHandler handler);

  /** {@return the use until now; also available after {@link #close()}} */
  GpuUsage usage();

  /**
   * Replaces the granted terms: share, policy, class, quota, bound on calls. The GPUs, the name,
   * the backend and the part stay. If the resize fails, nothing changes.
   *
   * @param request the new terms; make them from {@link #request()}{@code .toBuilder()}
   * @throws GpuCapacityException if the new terms do not fit beside the other leases, or if the new
   *     quota is smaller than what running calls and reservations hold
   * @throws IllegalArgumentException if the request names another GPU, or demands other
   *     capabilities
   * @throws IllegalStateException if the virtual GPU is closed
   */
  void resize(VirtualGpuRequest request);

  /**
   * Suspends all work under this virtual GPU, or none of it, within one minute. See {@link
   * #suspend(Duration)}.
   *
   * @throws GpuSuspendException if one of its processes cannot be suspended, or not in time
   * @throws IllegalStateException if the virtual GPU is closed
   */
  default void suspend() {
    suspend(Duration.ofMinutes(1));
  }

  /**
   * Suspends all work under this virtual GPU, or none of it. The memory of its processes moves to
   * host memory, and other tenants may use the freed GPU memory. Work, allocations and new calls
   * wait until {@link #resume}; programs notice nothing else. Quota and share stay reserved.
   *
   * <p>If it is already suspended, nothing moves, but memory reclaim no longer resumes it by
   * itself. Blocks until the suspension is done. Do not call it from within a call of this virtual
   * GPU: it would wait for itself.
   *
   * <p>The driver cannot suspend processes that use managed memory, share memory with other
   * processes (IPC), or run under MPS.
   *
   * @param timeout how long the suspension may take; above 0, and at most five minutes: a longer
   *     one counts as that. Undoing a failed suspension takes additional time
   * @throws GpuSuspendException if one of its processes cannot be suspended, or not in time. All
   *     processes run on as before, unless the message names one that does not
   * @throws IllegalStateException if the virtual GPU is closed
   */
  void suspend(Duration timeout);

  /**
   * Resumes all suspended work, or none of it, within one minute. See {@link #resume(Duration)}.
   *
   * @throws GpuSuspendException if there is no room for its memory, or not in time
   * @throws IllegalStateException if the virtual GPU is closed
   */
  default void resume() {
    resume(Duration.ofMinutes(1));
  }

  /**
   * Resumes all work that {@link #suspend} or memory reclaim suspended, or none of it. Does nothing
   * if it is not suspended. Blocks until the resumption is done.
   *
   * @param timeout how long the resumption may take; above 0, and at most five minutes: a longer
   *     one counts as that
   * @throws GpuSuspendException if there is no room for its memory, or not in time; it stays
   *     suspended
   * @throws IllegalStateException if the virtual GPU is closed
   */
  void resume(Duration timeout);

  /** {@return whether {@link #close()} was called} */
  boolean isClosed();

  /**
   * Gives the lease back. Waiting calls fail with {@link IllegalStateException}. Running calls
   * finish by themselves, and only then is their turn passed on. Never blocks, never throws; a
   * second call does nothing.
   */
  @Override
  void close();
}
