package dev.vgpu.core.node;

import dev.vgpu.backend.BackendStatus;
import dev.vgpu.core.NanoClock;
import dev.vgpu.core.book.GpuBook;
import dev.vgpu.core.book.NodeContext;
import dev.vgpu.core.book.PoolSettings;
import dev.vgpu.core.disk.LeaseDirectory;
import dev.vgpu.core.disk.OwnerSecret;
import dev.vgpu.core.disk.ProcessIdentity;
import dev.vgpu.core.disk.SeatLostException;
import dev.vgpu.core.events.Listeners;
import dev.vgpu.core.events.Preemptions;
import dev.vgpu.core.schedule.SchedulerSettings;
import dev.vgpu.core.schedule.ShareScheduler;
import dev.vgpu.core.schedule.TurnObserver;
import dev.vgpu.core.turn.GpuSeat;
import dev.vgpu.core.turn.RemoteTurns;
import dev.vgpu.core.turn.SeatThread;
import dev.vgpu.request.GpuId;
import dev.vgpu.watch.GpuEvent;
import dev.vgpu.watch.GpuListener;
import dev.vgpu.watch.PhysicalGpu;
import java.time.Instant;
import java.util.ArrayList;
import java.util.Collection;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicLong;
import java.util.concurrent.locks.Condition;
import java.util.concurrent.locks.ReentrantLock;
import java.util.function.Consumer;
import java.util.function.Function;
import java.util.function.LongConsumer;
import java.util.function.Supplier;
import org.jspecify.annotations.Nullable;

/**
 * The node as the pools of this JVM share it: its GPUs, the leases acquired through these pools,
 * and the threads that serve them. The {@link #authority} that decides about the GPUs may change
 * during its life. Thread-safe.
 */
public final class Node implements NodeContext {

  /**
   * The longest wait for threads when a pool closes; one may be in a caller's or a driver's code.
   */
  private static final long LONGEST_END_NS = 2_000_000_000L;

  private final NanoClock clock;
  private final ProcessIdentity self = ProcessIdentity.current();
  private final OwnerSecret secret = OwnerSecret.random();
  private final Workers workers;
  private final Listeners listeners;
  private final Preemptions preemptions;
  private final SeatThread seatThread;
  private final Consumer<Node> whenLeaseReleased;
  private final AtomicLong leasesMade = new AtomicLong();
  private final Map<String, Lease> leases = new ConcurrentHashMap<>();
  private final Map<GpuId, NodeGpu> gpus = new ConcurrentHashMap<>();
  private final Map<GpuId, RemoteTurns> turns = new ConcurrentHashMap<>();

  private final ReentrantLock lock = new ReentrantLock();
  private final Condition changed = lock.newCondition();
  private final PoolSettings optedFor;
  private volatile PoolSettings settings;
  private volatile List<PhysicalGpu> gpuList = List.of();
  private volatile @Nullable Authority authority;
  private volatile boolean shutDown;
  private volatile Runnable whenShutDown = () -> {};
  private volatile LongConsumer awaitOthers = deadlineNs -> {};
  private volatile boolean jvmAttached;

  /**
   * Creates a node without GPUs; {@code whenLeaseReleased} is called after each lease has ended.
   */
  public Node(PoolSettings settings, NanoClock clock, Consumer<Node> whenLeaseReleased) {
    this.settings = settings;
    this.optedFor = settings;
    this.clock = clock;
    this.whenLeaseReleased = whenLeaseReleased;
    this.workers = new Workers();
    this.listeners = new Listeners(clock, workers);
    this.preemptions = new Preemptions(listeners, clock);
    this.seatThread = new SeatThread(clock);
  }

  /**
   * The secret with which this JVM proves to each holder of the seat that its leases are its own.
   */
  public OwnerSecret secret() {
    return secret;
  }

  @Override
  public NanoClock clock() {
    return clock;
  }

  @Override
  public ProcessIdentity self() {
    return self;
  }

  @Override
  public PoolSettings settings() {
    return settings;
  }

  /** The options of this JVM; the settings in force may be those of another process. */
  public PoolSettings optedFor() {
    return optedFor;
  }

  @Override
  public Listeners listeners() {
    return listeners;
  }

  @Override
  public Preemptions preemptions() {
    return preemptions;
  }

  /** Threads for work that must not run on a caller's thread. They are created as needed. */
  @Override
  public ExecutorService workers() {
    return workers;
  }

  // ---- GPUs

  /** {@return the GPUs that it manages, in their order} */
  public List<PhysicalGpu> gpus() {
    return gpuList;
  }

  /** Sets the GPUs and the settings of the schedulers. Later calls must pass the same GPUs. */
  public void manage(List<PhysicalGpu> found, PoolSettings goBy) {
    settings = goBy;
    for (PhysicalGpu gpu : found) {
      if (!gpus.containsKey(gpu.id())) {
        gpus.put(gpu.id(), new NodeGpu(gpu, new GpuSeat(clock, seatThread)));
      }
    }
    if (gpuList.isEmpty()) {
      gpuList = List.copyOf(found);
    }
  }

  /** {@return one of its GPUs} */
  public NodeGpu gpu(GpuId id) {
    NodeGpu gpu = gpus.get(id);
    if (gpu == null) {
      throw new IllegalStateException("no such GPU: " + id);
    }
    return gpu;
  }

  /** The stand-in for a GPU's scheduler while another process decides. */
  public RemoteTurns turns(NodeGpu gpu) {
    return turns.computeIfAbsent(
        gpu.gpu().id(),
        id -> {
          RemoteTurns made = new RemoteTurns(gpu.seat(), settings.of(id).idleLinger().toNanos());
          gpu.seat().take();
          gpu.seat().follow(made);
          gpu.seat().stepAndLeave();
          return made;
        });
  }

  /** {@return the stand-ins for all schedulers while another process decides} */
  public Collection<RemoteTurns> turns() {
    for (PhysicalGpu gpu : gpuList) {
      RemoteTurns ignored = turns(gpu(gpu.id()));
    }
    return turns.values();
  }

  /** {@return a lease's connection to the deciding process; null if there is none} */
  public RemoteTurns.@Nullable Tenant tenant(String lease) {
    Lease of = leases.get(lease);
    return of == null ? null : of.remote();
  }

  /** {@return whether no thread has the seat of any GPU at this moment} Takes no lock. */
  public boolean areSeatsFree() {
    return gpus.values().stream().noneMatch(gpu -> gpu.seat().isTaken());
  }

  /** Takes and leaves the seat of each GPU once. */
  public void visitSeats() {
    for (NodeGpu gpu : gpus.values()) {
      gpu.seat().take();
      gpu.seat().leave();
    }
  }

  /**
   * Stops deciding. Open gates stay open until the next authority, not yet known, shuts them. A
   * second call finds the leases that were granted during the first.
   */
  public void stopDeciding() {
    turns().forEach(each -> each.connect(null));
    for (Lease lease : leases.values()) {
      RemoteTurns.Tenant tenant = lease.remote();
      if (tenant == null || !tenant.isOf(turns(lease.on))) {
        lease.remote(turns(lease.on).new Tenant(lease.id, lease.gate, RemoteTurns.Before.OPEN));
      }
    }
  }

  /** Creates new books, whose schedulers decide from now on. */
  public List<GpuBook> newSlots() {
    List<GpuBook> books = new ArrayList<>();
    for (PhysicalGpu gpu : gpuList) {
      GpuSeat seat = gpu(gpu.id()).seat();
      TurnObserver observer = preemptions.observer(gpu.id(), seat);
      SchedulerSettings goBy = SchedulerSettings.from(settings.of(gpu.id()));
      ShareScheduler scheduler = new ShareScheduler(goBy, observer, clock.nanoTime());
      books.add(new GpuBook(gpu, seat, scheduler, settings.of(gpu.id())));
    }
    turns.clear();
    return books;
  }

  /** {@return the ids of these GPUs} */
  public static Set<GpuId> ids(List<PhysicalGpu> gpus) {
    Set<GpuId> ids = new HashSet<>();
    gpus.forEach(gpu -> ids.add(gpu.id()));
    return ids;
  }

  // ---- who decides

  /** Runs an action while no other thread can change the authority. */
  public <T> T exclusively(Supplier<T> action) {
    lock.lock();
    try {
      return action.get();
    } finally {
      lock.unlock();
    }
  }

  /** Sets the authority that decides from now on. */
  public void authority(Authority decides) {
    lock.lock();
    try {
      authority = decides;
      changed.signalAll();
    } finally {
      lock.unlock();
    }
  }

  /** A question to the current authority. */
  public interface Question<T> {
    /** {@return the answer} */
    T ask(Authority authority) throws InterruptedException;
  }

  /** Asks the current authority. If that process dies, asks its successor. */
  public <T> T ask(Question<T> question) throws InterruptedException {
    for (; ; ) {
      Authority asked = current();
      try {
        return question.ask(asked);
      } catch (SeatLostException e) {
        awaitOtherThan(asked);
      }
    }
  }

  /** Like {@link #ask}, but ignores interrupts until it has the answer. */
  public <T> T askUninterruptibly(Function<Authority, T> question) {
    boolean interrupted = false;
    try {
      for (; ; ) {
        try {
          return ask(question::apply);
        } catch (InterruptedException e) {
          interrupted = true;
        }
      }
    } finally {
      if (interrupted) {
        Thread.currentThread().interrupt();
      }
    }
  }

  private Authority current() {
    Authority decides = authority;
    if (decides == null) {
      throw new IllegalStateException("the pool is closed");
    }
    return decides;
  }

  private void awaitOtherThan(Authority asked) throws InterruptedException {
    lock.lockInterruptibly();
    try {
      while (authority == asked) {
        if (shutDown) {
          throw new IllegalStateException("the pool is closed");
        }
        changed.await();
      }
    } finally {
      lock.unlock();
    }
  }

  void publish(Function<Instant, GpuEvent> event) {
    current().publish(event);
  }

  /** Adds a listener to all events of the node, from now on. Run the result to remove it. */
  public Runnable listen(GpuListener listener) {
    Runnable stop = listeners.listen(listener);
    current().listen();
    return stop;
  }

  // ---- leases of this JVM

  @Override
  public String newLeaseId(String name, @Nullable LeaseDirectory disk) {
    return disk == null ? name + "-" + leasesMade.incrementAndGet() : disk.newId(name);
  }

  void add(Lease lease) {
    leases.put(lease.id, lease);
  }

  /** Removes a lease that has ended. */
  void remove(Lease lease) {
    leases.remove(lease.id);
    whenLeaseReleased.accept(this);
  }

  /** {@return the leases of this JVM} */
  public Collection<Lease> leases() {
    return leases.values();
  }

  /** {@return a lease of this JVM; null if there is none with that name} */
  public @Nullable Lease lease(String id) {
    return leases.get(id);
  }

  /** Whether this JVM itself runs, or ran, under one of its virtual GPUs. */
  public boolean isJvmAttached() {
    return jvmAttached;
  }

  /** Records that this JVM runs under one of its virtual GPUs. */
  public void markJvmAttached() {
    jvmAttached = true;
  }

  /** {@return whether this JVM has no lease} */
  public boolean hasNoLeases() {
    return leases.isEmpty();
  }

  /**
   * Reports that a lease is closed and its last call has left. Does not block: if nobody decides,
   * {@link Lease#endIfDrained} tells the next one.
   */
  void ended(Lease lease) {
    for (Authority told = current(); ; told = current()) {
      try {
        told.ended(lease);
        return;
      } catch (SeatLostException e) {
        if (told == authority) {
          return;
        }
      }
    }
  }

  /** Refuses all waiting requests of an owner that closes. */
  public void failPending(Object owner) {
    current().failPending(owner);
  }

  /** {@return the status of each provider and each backend, from the deciding process} */
  public List<BackendStatus> backends() {
    return askUninterruptibly(Authority::backends);
  }

  /**
   * Sets what happens at shutdown.
   *
   * @param action stops the remaining components
   * @param await waits until their threads have ended, up to a deadline in nanoseconds
   */
  public void whenShutDown(Runnable action, LongConsumer await) {
    whenShutDown = action;
    awaitOthers = await;
  }

  /** {@return whether it was shut down} */
  public boolean isShutDown() {
    return shutDown;
  }

  /** Waits for a while, and returns whether it was shut down or the caller was interrupted. */
  public boolean awaitShutDown(long mostNs) {
    lock.lock();
    try {
      for (long leftNs = mostNs; !shutDown && leftNs > 0; ) {
        leftNs = changed.awaitNanos(leftNs);
      }
      return shutDown;
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
      return true;
    } finally {
      lock.unlock();
    }
  }

  /** Stops the threads. Called when no pool is open and no lease is left. */
  public void shutDown() {
    lock.lock();
    try {
      shutDown = true;
      changed.signalAll();
    } finally {
      lock.unlock();
    }
    whenShutDown.run();
    seatThread.close();
    workers.shutdown();
  }

  /**
   * Waits until the threads have ended, so that the class loader of this class can be closed. The
   * caller must hold no lock.
   */
  public void awaitEnd() {
    long deadlineNs = clock.nanoTime() + LONGEST_END_NS;
    awaitOthers.accept(deadlineNs);
    seatThread.awaitEnd(deadlineNs);
    boolean interrupted = Thread.interrupted();
    try {
      boolean ignored =
          Workers.isCaller()
              || workers.awaitTermination(deadlineNs - clock.nanoTime(), TimeUnit.NANOSECONDS);
    } catch (InterruptedException e) {
      interrupted = true;
    }
    if (interrupted) {
      Thread.currentThread().interrupt();
    }
  }
}
