package dev.vgpu.spi;

import dev.vgpu.VgpuException;
import dev.vgpu.request.Capabilities;
import dev.vgpu.request.GpuId;
import dev.vgpu.request.MemorySize;
import dev.vgpu.request.VirtualGpuRequest;
import java.nio.file.Path;
import java.util.List;
import java.util.Map;
import java.util.Optional;

/**
 * One lease under a backend: a gate for the work of its processes, and the account of their use.
 * The scheduler calls the gate's methods ({@link #open} to {@link #contended}) on one thread at a
 * time. They must not block, and must not call the listener before they return.
 */
public interface EnforcedLease extends AutoCloseable {
  /**
   * Receives the state changes of a lease's processes. Called on the backend's thread; must return
   * quickly.
   */
  interface Listener {
    /** A process of an idle lease has work, or waits to start some. */
    void wanted();

    /**
     * No work of the lease is left on the GPU. Called once after {@link #shut()} returned {@code
     * false}. While {@link #contended} is set, also called each time the lease becomes idle.
     */
    void drained();

    /**
     * A process attached or left.
     *
     * @param attached the number of attached processes now
     */
    void processes(int attached);

    /**
     * A process reported impossible values, or stopped reporting. Its values are used as far as
     * they can be true. Called once for each process and kind of false report.
     *
     * @param reason the process and its report
     */
    default void suspect(String reason) {}

    /**
     * The lease's processes yielded to a more urgent lease by themselves: their gate stayed open.
     *
     * @param by the id of the more urgent lease
     * @param times how often a thread had to wait for it since the last call; at least 1
     */
    default void yielded(String by, long times) {}

    /**
     * A service that its processes need failed and was restarted. The processes may have failed
     * with it.
     *
     * @param reason the failure, and the other leases affected
     */
    default void disturbed(String reason) {}
  }

  /**
   * Sets the GPUs that the lease is cut from, before any program is started. Its processes see
   * these GPUs and no others.
   *
   * @param gpus in order; the first is the one that the lease was prepared for
   */
  default void gpus(List<GpuId> gpus) {}

  /** Allows work to start. */
  void open();

  /**
   * Stops further work from starting. Work that is on the GPU continues.
   *
   * @return whether no work is on the GPU; after {@code false}, {@link Listener#drained()} follows
   */
  boolean shut();

  /**
   * Asks running work to end soon, if possible. Called after {@link #shut()}.
   *
   * @return how many pieces of work were asked to end
   */
  int preempt();

  /** {@return whether work is on the GPU, or waits to start} */
  boolean hasWork();

  /**
   * {@return the GPU time until now, in nanoseconds; never decreases}
   *
   * @param nowNs the present, on the clock of {@link System#nanoTime()}
   */
  long gpuTimeNs(long nowNs);

  /**
   * Tells the lease whether other tenants wait for the GPU.
   *
   * @param contended whether others wait
   */
  void contended(boolean contended);

  /** {@return the shortest turn that is worth its hand-over, in nanoseconds; 0 means any} */
  long leastTurnNs();

  /**
   * {@return whether its processes yield by themselves} Such processes stop at once while a more
   * urgent lease is busy. Processes of an urgent lease announce that they are busy. While held back
   * this way, the lease has work and its GPU time does not advance.
   */
  default boolean yieldsByItself() {
    return false;
  }

  /**
   * Sets whether its processes yield by themselves.
   *
   * @param obey whether they yield; true until this is called
   */
  default void yielding(boolean obey) {}

  /**
   * Tells the lease whether its processes are suspended, or about to be. Work that the backend
   * stopped midway then runs to its end although the gate is shut, because a suspension waits for
   * it. A process that holds no GPU memory ({@link #memoryHolders}) must not begin to: it waits
   * where it would allocate.
   *
   * @param finish whether they are suspended or about to be; false until this is called
   */
  default void finishing(boolean finish) {}

  /**
   * {@return whether its gate may be open beside other leases' gates} True if its work is measured
   * on the device, and the device gives busy processes equal time slices.
   */
  default boolean mayOverlap() {
    return false;
  }

  /**
   * {@return when the last work counted by {@link #gpuTimeNs} ended, on the same clock; negative if
   * not known} With {@link #mayOverlap} and this time, the next lease may begin while the last work
   * of this one ends, and the time in which both ran can be split.
   */
  default long busyUntilNs() {
    return -1;
  }

  /** {@return what is known of its work besides {@link #gpuTimeNs}} */
  default GpuWork work() {
    return GpuWork.UNKNOWN;
  }

  /**
   * {@return how much of {@link #gpuTimeNs} was other leases' slices, as last set, in nanoseconds}
   * Stored with the lease for the next holder of the seat.
   */
  default long othersNs() {
    return 0;
  }

  /**
   * Sets how much of {@link #gpuTimeNs} was other leases' slices while this lease overlapped with
   * them.
   *
   * @param ns the total in nanoseconds; never decreases
   */
  default void othersNs(long ns) {}

  /**
   * Replaces the granted terms.
   *
   * @param request the new terms
   * @param entitledPermille the part of the GPU, 0 to 1000 thousandths, to which processes limit
   *     themselves while no seat answers
   * @return false, with nothing changed, if its processes hold more memory than the new quota
   */
  boolean tryResize(VirtualGpuRequest request, int entitledPermille);

  /**
   * {@return the variables that put a program under this lease} The caller adds those of the GPU,
   * {@link GpuProvider#environment}. A value may refer to a variable of the program's own
   * environment by {@code ${NAME}}, which is empty if that variable is not set.
   */
  Map<String, String> environment();

  /**
   * {@return the words to put before a program's own command, so that it starts under this lease;
   * empty if {@link #environment} is enough} They replace themselves by the program ({@code exec}),
   * or end with 126 if it cannot be put under the lease. The variables of {@link #environment} are
   * set for them too.
   */
  default List<String> launcher() {
    return List.of();
  }

  /**
   * Checks, before a program is started, whether it can be put under this lease at all. A missing
   * program is no error here; starting it will fail.
   *
   * @param executable the program as it would be started: a path, or a name to look up in {@code
   *     PATH}
   * @throws VgpuException if the program cannot be put under this lease; the message says why
   */
  default void check(Path executable) {}

  /** {@return the memory that its processes hold, on all its GPUs together} */
  MemorySize memoryUsed();

  /**
   * {@return the memory that its processes hold on one of its GPUs; an even part by default}
   *
   * @param gpu the GPU's position among those of the lease, from 0
   * @param gpus how many GPUs the lease has; at least 1
   */
  default MemorySize memoryUsed(int gpu, int gpus) {
    return MemorySize.ofBytes(memoryUsed().bytes() / gpus);
  }

  /** {@return the ids of the attached processes, each in its own pid namespace} */
  List<Long> processes();

  /**
   * {@return whether any process is attached apart from the given one} Never blocks.
   *
   * @param pid an id in this process's pid namespace; a process of another namespace may have the
   *     same id
   */
  default boolean hasProcessesBesides(long pid) {
    return processes().stream().anyMatch(other -> other != pid);
  }

  /**
   * {@return the ids of the attached processes that are visible from here, in this process's pid
   * namespace}
   */
  default List<Long> visibleProcesses() {
    return processes();
  }

  /**
   * {@return those of {@link #visibleProcesses} that hold memory on the GPU, even if only a
   * context's} A suspension concerns only these.
   */
  default List<Long> memoryHolders() {
    return visibleProcesses();
  }

  /**
   * {@return whether a running program was started under this lease, by any process, and may still
   * attach} This finds programs that are visible from here and have the variables of {@link
   * #environment}. A program's children have them too, unless it removes them. May take as long as
   * a scan of all processes of the node.
   */
  default boolean mayAttachYet() {
    return false;
  }

  /**
   * {@return the mover of its processes' memory; empty unless its request asks for movable memory}
   */
  default Optional<MemoryMover> mover() {
    return Optional.empty();
  }

  /**
   * {@return why work under it cannot be relied on any more, in words, for example because its part
   * of the GPU was destroyed; empty if no problem is known} Does not block.
   */
  default Optional<String> impaired() {
    return Optional.empty();
  }

  /** {@return how many threads of its processes wait for a turn} */
  int waiting();

  /** {@return the allocations that exceeded the quota and were refused} */
  long deniedAllocations();

  /** {@return the kernels and graphs that its processes launched} */
  long launches();

  /**
   * {@return how long the copy engines have worked for its processes' copies, in nanoseconds; not
   * part of {@link #gpuTimeNs}; never decreases}
   */
  default long copyTimeNs() {
    return 0;
  }

  /**
   * {@return where its processes can be interrupted now: the weakest of them decides; empty if
   * there are none}
   */
  default Optional<Capabilities.Preemption> preemption() {
    return Optional.empty();
  }

  /**
   * {@return why its processes cannot be interrupted inside a kernel, in words; empty if they can,
   * or if there are none}
   */
  default Optional<String> preemptionReason() {
    return Optional.empty();
  }

  /** {@return the driver calls that were passed through unhandled} */
  long passedThrough();

  /**
   * Ends the lease: processes that are still attached can start no more work. Its files may be
   * removed afterwards.
   *
   * @throws VgpuException never
   */
  @Override
  void close();
}
