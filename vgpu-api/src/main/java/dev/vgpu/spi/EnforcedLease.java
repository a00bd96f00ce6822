package dev.vgpu.spi;

import dev.vgpu.Capabilities;
import dev.vgpu.GpuId;
import dev.vgpu.MemorySize;
import dev.vgpu.VgpuException;
import dev.vgpu.VirtualGpuRequest;
import java.nio.file.Path;
import java.util.List;
import java.util.Map;
import java.util.Optional;

/**
 * One lease under a backend: a gate in front of its processes' work, and the account of their use.
 * The gate's methods ({@link #open} to {@link #contended}) are called by one thread at a time, the
 * scheduler's owner; they must not block and must not call the listener from within.
 */
public interface EnforcedLease extends AutoCloseable {
  /**
   * Receives the state changes of a lease's processes. Called on the backend's thread; must be
   * quick.
   */
  interface Listener {
    /** A process of an idle lease has work, or waits to start some. */
    void wanted();

    /**
     * Nothing of the lease is on the GPU any more. Told once after {@link #shut()} has said {@code
     * false}; and while {@link #contended} was told, each time that the lease becomes idle.
     */
    void drained();

    /**
     * A process came or went.
     *
     * @param attached how many there are now
     */
    void processes(int attached);

    /**
     * A process reported impossible values, or stopped reporting. It is believed as far as it can
     * be true; this is told once for each process and kind of lie.
     *
     * @param reason the process and its report
     */
    default void suspect(String reason) {}

    /**
     * Its processes gave way to a more urgent lease's by themselves: their gate stayed open.
     *
     * @param by the id of that lease
     * @param times how often a thread had to wait for it, since this was told last; at least 1
     */
    default void yielded(String by, long times) {}

    /**
     * A service that its processes need failed and was restarted. They may have failed with it.
     *
     * @param reason the failure, and the other leases in its reach
     */
    default void disturbed(String reason) {}
  }

  /**
   * Tells which GPUs the lease is cut from, before any program is started: its processes are to see
   * these, and no other.
   *
   * @param gpus in their order; the first is the one that it was prepared for
   */
  default void gpus(List<GpuId> gpus) {}

  /** Lets work start. */
  void open();

  /**
   * Lets no further work start. Work on the GPU goes on.
   *
   * @return whether nothing is; after {@code false} {@link Listener#drained()} follows
   */
  boolean shut();

  /**
   * Asks running work to end soon, where that is possible. Called after {@link #shut()}.
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
   * Tells whether others wait for the GPU.
   *
   * @param contended whether they do
   */
  void contended(boolean contended);

  /** {@return the shortest turn that is worth its hand-over, in nanoseconds; 0: any} */
  long leastTurnNs();

  /**
   * {@return whether its processes stop by themselves, at once, while a more urgent lease is busy,
   * and announce that they are busy where they are the urgent ones} While they are held back so,
   * the lease has work and its GPU time does not run.
   */
  default boolean yieldsByItself() {
    return false;
  }

  /**
   * Tells whether its processes are to yield by themselves.
   *
   * @param obey whether they are to; so until told otherwise
   */
  default void yielding(boolean obey) {}

  /**
   * Tells whether its processes are suspended, or about to be. Work that the backend has stopped in
   * its middle then goes on to its end, although the gate is shut: a suspension waits for that. A
   * process that is in none of {@link #memoryHolders} stays so: it takes no memory on the GPU, but
   * waits where it would.
   *
   * @param finish whether they are; not, until told otherwise
   */
  default void finishing(boolean finish) {}

  /**
   * {@return whether it may be open beside other leases: its work is measured on the device, which
   * gives busy processes equal slices of time}
   */
  default boolean mayOverlap() {
    return false;
  }

  /**
   * {@return when the last work that {@link #gpuTimeNs} counts ended, on the same clock; negative:
   * not known} With {@link #mayOverlap} and this, the next lease may begin while the last work of
   * this one ends, and the time that both had is told apart.
   */
  default long busyUntilNs() {
    return -1;
  }

  /**
   * {@return how much of {@link #gpuTimeNs} was others' slices, as was told last, in nanoseconds}
   * Kept with the lease for whoever holds the seat next.
   */
  default long othersNs() {
    return 0;
  }

  /**
   * Tells how much of {@link #gpuTimeNs} was others' slices while this lease overlapped with them.
   *
   * @param ns in nanoseconds, in all; never decreases
   */
  default void othersNs(long ns) {}

  /**
   * Grants other terms.
   *
   * @param request the terms from now on
   * @param entitledPermille the pace in thousandths of the GPU that processes keep by themselves
   *     while no seat answers, 0 to 1000
   * @return false, and nothing is changed, if its processes hold more memory than is asked for
   */
  boolean tryResize(VirtualGpuRequest request, int entitledPermille);

  /**
   * {@return the variables that put a program under this lease} The caller adds those of the GPU,
   * {@link GpuProvider#environment}. A value may hold a reference to the variable of the program's
   * own environment by {@code ${NAME}}, which is empty where that is not set.
   */
  Map<String, String> environment();

  /**
   * Checks, before a program is started, whether it can be put under this lease at all. One that is
   * not there is left to whoever starts it.
   *
   * @param executable the program as it would be started: a path, or a name to look up in {@code
   *     PATH}
   * @throws VgpuException if it cannot; the message says why
   */
  default void check(Path executable) {}

  /** {@return the memory that its processes hold of the quota} */
  MemorySize memoryUsed();

  /** {@return the process ids of those attached, in their own namespaces} */
  List<Long> processes();

  /**
   * {@return whether a process is attached other than one of this process's namespace} Never waits.
   *
   * @param pid its id; a process of another namespace may have the same one there
   */
  default boolean hasProcessesBesides(long pid) {
    return processes().stream().anyMatch(other -> other != pid);
  }

  /**
   * {@return the process ids of those attached that can be seen from here, in the namespace of this
   * process}
   */
  default List<Long> visibleProcesses() {
    return processes();
  }

  /**
   * {@return those of {@link #visibleProcesses} that hold memory on the GPU, be it a context's}
   * Whoever suspends the lease has to do with these only.
   */
  default List<Long> memoryHolders() {
    return visibleProcesses();
  }

  /**
   * {@return whether a program lives that was started under this lease, by any process, and may
   * attach yet} Known are those that can be seen from here and have the variables of {@link
   * #environment}, and a program's children have them too, unless it takes them away. May take as
   * long as a look at all processes of the node.
   */
  default boolean mayAttachYet() {
    return false;
  }

  /** {@return the mover of its processes' memory, where its request wants that} */
  default Optional<MemoryMover> mover() {
    return Optional.empty();
  }

  /**
   * {@return why what runs under it cannot be relied on any more, in words, for example since what
   * it stood on was destroyed; empty if nothing is known to be wrong} Does not block.
   */
  default Optional<String> impaired() {
    return Optional.empty();
  }

  /** {@return how many threads of its processes wait for a turn} */
  int waiting();

  /** {@return the allocations that were refused for the quota} */
  long deniedAllocations();

  /** {@return the kernels and graphs that its processes launched} */
  long launches();

  /**
   * {@return how long the copies of its processes took on the copy engines until now, in
   * nanoseconds; not in {@link #gpuTimeNs}; never decreases}
   */
  default long copyTimeNs() {
    return 0;
  }

  /**
   * {@return where its processes can be interrupted now: as the weakest of them can; empty while
   * there is none}
   */
  default Optional<Capabilities.Preemption> preemption() {
    return Optional.empty();
  }

  /**
   * {@return why its processes cannot be interrupted inside a kernel, in words; empty if they can,
   * or there is none}
   */
  default Optional<String> preemptionReason() {
    return Optional.empty();
  }

  /** {@return the calls of driver functions that were passed through unhandled} */
  long passedThrough();

  /**
   * Ends it: processes that are still attached can start nothing any more. Its files may be removed
   * afterwards.
   *
   * @throws VgpuException never
   */
  @Override
  void close();
}
