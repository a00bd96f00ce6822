package dev.vgpu.core.node;

import dev.vgpu.BackendStatus;
import dev.vgpu.GpuEvent;
import dev.vgpu.GpuId;
import dev.vgpu.GpuListener;
import dev.vgpu.PhysicalGpu;
import dev.vgpu.core.NanoClock;
import dev.vgpu.core.book.GpuSlot;
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
import dev.vgpu.core.turn.GpuSeat;
import dev.vgpu.core.turn.RemoteTurns;
import dev.vgpu.core.turn.SeatThread;
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
 * The GPUs that this JVM's pools share, the leases that were acquired through them, and the threads
 * behind. Who decides about the GPUs may change while it lives: {@link #authority}. Safe for use by
 * several threads.
 */
public final class Node implements NodeContext {

  /** How long a pool's closing waits for threads; one may be in a caller's code, or a driver's. */
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

  /** Makes one that manages no GPU yet; the last argument is told each lease that has ended. */
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

  /** What this JVM proves with to each holder of the seat that its leases are its own. */
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

  /** What this JVM's options ask for; another process's may hold instead. */
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

  /** Threads for what must not run on a caller's thread; as many as are needed, none when idle. */
  @Override
  public ExecutorService workers() {
    return workers;
  }

  // ---- GPUs

  /** {@return the GPUs that it manages, in their order} */
  public List<PhysicalGpu> gpus() {
    return gpuList;
  }

  /** Says which GPUs there are, and what schedulers go by; once, and again only with the same. */
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

  /** What stands for a GPU's scheduler while another process decides. */
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

  /** {@return what stands for each scheduler while another process decides} */
  public Collection<RemoteTurns> turns() {
    for (PhysicalGpu gpu : gpuList) {
      RemoteTurns ignored = turns(gpu(gpu.id()));
    }
    return turns.values();
  }

  /** {@return what speaks for a lease to another process; null if there is none} */
  public RemoteTurns.@Nullable Tenant tenant(String lease) {
    Lease of = leases.get(lease);
    return of == null ? null : of.remote();
  }

  /** Takes the seat of each GPU once, and leaves it. */
  public void visitSeats() {
    for (NodeGpu gpu : gpus.values()) {
      gpu.seat().take();
      gpu.seat().leave();
    }
  }

  /**
   * This JVM decides no more, and does not know yet who does: its turns end when they are asked.
   */
  public void stopDeciding() {
    turns().forEach(each -> each.connect(null));
    for (Lease lease : leases.values()) {
      lease.remote(turns(lease.on).new Tenant(lease.id, lease.gate, RemoteTurns.Before.OPEN));
    }
  }

  /** New books, whose schedulers decide from now on. */
  public List<GpuSlot> newSlots() {
    List<GpuSlot> slots = new ArrayList<>();
    for (PhysicalGpu gpu : gpuList) {
      GpuSeat seat = gpu(gpu.id()).seat();
      ShareScheduler.Observer observer = preemptions.observer(gpu.id(), seat);
      SchedulerSettings goBy = SchedulerSettings.from(settings.of(gpu.id()));
      ShareScheduler scheduler = new ShareScheduler(goBy, observer, clock.nanoTime());
      slots.add(new GpuSlot(gpu, seat, scheduler, settings.of(gpu.id())));
    }
    turns.clear();
    return slots;
  }

  /** {@return the ids of these GPUs} */
  public static Set<GpuId> ids(List<PhysicalGpu> gpus) {
    Set<GpuId> ids = new HashSet<>();
    gpus.forEach(gpu -> ids.add(gpu.id()));
    return ids;
  }

  // ---- who decides

  /** Does something while nobody else changes who decides. */
  public <T> T exclusively(Supplier<T> action) {
    lock.lock();
    try {
      return action.get();
    } finally {
      lock.unlock();
    }
  }

  /** Says who decides from now on. */
  public void authority(Authority decides) {
    lock.lock();
    try {
      authority = decides;
      changed.signalAll();
    } finally {
      lock.unlock();
    }
  }

  /** A question to who decides. */
  public interface Question<T> {
    /** {@return the answer} */
    T ask(Authority authority) throws InterruptedException;
  }

  /** Asks who decides; and if that process dies, the one that decides after it. */
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

  /** Asks without being interruptible. */
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

  /** {@return what ends the telling of all events to a listener, which begins now} */
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

  /** Books out a lease of which nothing is left. */
  void remove(Lease lease) {
    leases.remove(lease.id);
    whenLeaseReleased.accept(this);
  }

  /** {@return the leases of this JVM} */
  public Collection<Lease> leases() {
    return leases.values();
  }

  /** {@return a lease of this JVM; null if there is none} */
  public @Nullable Lease lease(String id) {
    return leases.get(id);
  }

  /** Whether this JVM is, or was, itself under one of its virtual GPUs. */
  public boolean isJvmAttached() {
    return jvmAttached;
  }

  /** This JVM is under one of its virtual GPUs from now on. */
  public void markJvmAttached() {
    jvmAttached = true;
  }

  /** {@return whether this JVM has no lease} */
  public boolean hasNoLeases() {
    return leases.isEmpty();
  }

  /** A lease was closed and its last call has left. Does not block. */
  void ended(Lease lease) {
    try {
      current().ended(lease);
    } catch (SeatLostException e) {
      workers.execute(
          () ->
              askUninterruptibly(
                  decides -> {
                    decides.ended(lease);
                    return lease;
                  }));
    }
  }

  /** Refuses all requests that wait on behalf of an owner that closes. */
  public void failPending(Object owner) {
    current().failPending(owner);
  }

  /** {@return what the deciding process knows of backends} */
  public List<BackendStatus> backends() {
    return askUninterruptibly(Authority::backends);
  }

  /**
   * Says what to do at the end.
   *
   * @param action ends what else there is
   * @param await waits until its threads have ended, until a time at most
   */
  public void whenShutDown(Runnable action, LongConsumer await) {
    whenShutDown = action;
    awaitOthers = await;
  }

  /** {@return whether it has ended} */
  public boolean isShutDown() {
    return shutDown;
  }

  /** Ends the threads, when no pool is open and nothing is leased any more. */
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
   * Waits until the threads have ended, so that the class loader of this class may be closed. To be
   * called without any lock held.
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
