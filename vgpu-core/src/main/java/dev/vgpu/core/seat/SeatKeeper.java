package dev.vgpu.core.seat;

import dev.vgpu.PhysicalGpu;
import dev.vgpu.VgpuException;
import dev.vgpu.core.NanoClock;
import dev.vgpu.core.book.Enforcements;
import dev.vgpu.core.book.LeaseTable;
import dev.vgpu.core.discovery.Discovery;
import dev.vgpu.core.disk.LeaseDirectory;
import dev.vgpu.core.disk.RunDirectory;
import dev.vgpu.core.disk.SeatLock;
import dev.vgpu.core.disk.SeatLostException;
import dev.vgpu.core.node.HealthWatch;
import dev.vgpu.core.node.Lease;
import dev.vgpu.core.node.LocalAuthority;
import dev.vgpu.core.node.Node;
import dev.vgpu.core.reclaim.MemoryReclaim;
import dev.vgpu.core.reclaim.Suspensions;
import dev.vgpu.core.turn.UsageReading;
import dev.vgpu.core.wire.LinkLoop;
import java.io.IOException;
import java.net.ConnectException;
import java.nio.file.Files;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.concurrent.locks.LockSupport;
import java.util.concurrent.locks.ReentrantLock;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Ensures that a node has a seat. It takes the seat if it is free; otherwise it becomes a client of
 * the process that holds it. When that process dies, it tries again. One thread at a time does so.
 * Thread-safe.
 */
public final class SeatKeeper {
  private static final Logger log = LoggerFactory.getLogger(SeatKeeper.class);
  private static final long MILLI_NS = 1_000_000;
  private static final long RETRY_NS = MILLI_NS;
  private static final long WELCOME_NS = 2_000 * MILLI_NS;
  private static final long OPENING_NS = 5_000 * MILLI_NS;

  /** The limit for a holder that is starting or giving up; longer than the time it has to stop. */
  private static final long BEGINNING_NS = 15_000 * MILLI_NS;

  private static final long AGAIN_NS = 100 * MILLI_NS;
  private static final long MOST_AGAIN_NS = 5_000 * MILLI_NS;
  private static final long REPORT_EVERY_NS = 100 * MILLI_NS;

  private final Node node;
  private final RunDirectory directory;
  private final Discovery discovery;
  private final NanoClock clock;
  private final List<PhysicalGpu> asked;
  private final GpuLocks gpuLocks;
  private final ReentrantLock joining = new ReentrantLock();

  /** Replaced after the seat was given up, or if its thread has ended. */
  private volatile LinkLoop loop;

  private volatile Enforcements enforcements;
  private volatile boolean gaveUp;

  // Confined to the loop's thread.
  private final Map<String, UsageReading> reported = new HashMap<>();
  private long reportedNs;

  // Changed by the joining thread, under the node's lock.
  private @Nullable Holding holding;
  private @Nullable SeatWatch watch;
  private volatile @Nullable SeatClient client;

  /** Creates a keeper, which stops when the node is shut down. */
  public SeatKeeper(
      Node node,
      RunDirectory directory,
      Discovery discovery,
      List<PhysicalGpu> asked,
      GpuLocks gpuLocks,
      Enforcements enforcements)
      throws IOException {
    this.node = node;
    this.asked = asked;
    this.gpuLocks = gpuLocks;
    this.directory = directory;
    this.discovery = discovery;
    this.enforcements = enforcements;
    this.clock = node.clock();
    this.loop = new LinkLoop(clock);
    node.whenShutDown(this::leave, this::awaitEnd);
  }

  /**
   * Takes the seat, or connects to the process that holds it. In root's directory, another user's
   * process never takes the seat.
   *
   * @throws VgpuException if neither is possible
   */
  public void join() {
    long startNs = clock.nanoTime();
    long listensNs = startNs; // the holder has listened since then, if it does
    boolean mayHold = !directory.isOfRoot();
    while (!node.isShutDown()) {
      SeatLock.Outcome outcome =
          mayHold ? tryLock() : new SeatLock.Outcome(null, SeatLock.holder(directory.lock()));
      if (outcome.lock() != null) {
        hold(outcome.lock());
        return;
      }
      Exception failure;
      try {
        work(
            SeatClient.connect(
                node, loop, directory.socket(), outcome.holder(), WELCOME_NS, this::lost));
        return;
      } catch (IOException | SeatLostException e) {
        failure = e; // the holder is starting, or has just died
      }
      // Or is giving the seat up. A socket that refuses is left over, or its process is about to
      // listen, which takes long on a busy machine.
      boolean begins =
          mayHold && (failure instanceof ConnectException || !Files.exists(directory.socket()));
      long nowNs = clock.nanoTime();
      if (begins ? nowNs - startNs > BEGINNING_NS : nowNs - listensNs > OPENING_NS) {
        throw new VgpuException(
            (mayHold
                    ? "another process has the seat and does not answer: path="
                    : "no process of root holds the seat, or it does not answer; start it"
                        + " (systemctl start vgpu, or vgpu serve as root): path=")
                + directory.path()
                + outcome.describedHolder()
                + ": "
                + failure);
      }
      listensNs = begins ? nowNs : listensNs;
      LockSupport.parkNanos(this, RETRY_NS);
    }
  }

  private SeatLock.Outcome tryLock() {
    try {
      return SeatLock.tryTake(directory.lock(), node.self());
    } catch (IOException e) {
      throw new VgpuException(
          "the seat's lock cannot be taken: path=" + directory.lock() + ": " + e.getMessage(), e);
    }
  }

  // ---- as the seat's holder

  private void hold(SeatLock lock) {
    boolean held = false;
    try {
      if (node.gpus().isEmpty()) {
        directory.checkSpace();
        List<PhysicalGpu> found =
            asked.isEmpty() ? enforcements.withoutParts(discovery.gpus()) : asked;
        node.settings().check(found);
        Discovery.logFound(found);
        node.manage(found, node.settings());
      }
      if (asked.isEmpty()) {
        gpuLocks.take(node.gpus(), discovery, directory.path(), node.self());
      }
      held =
          node.exclusively(
              () -> {
                if (!node.isShutDown()) { // otherwise nobody would give it up
                  take(lock);
                  watch();
                }
                return holding != null;
              });
    } finally {
      if (!held) {
        gpuLocks.close();
        lock.close();
      }
    }
  }

  private void take(SeatLock lock) {
    LeaseDirectory leases = openLeases();
    client = null;
    boolean taken = false;
    try {
      take(lock, leases);
      taken = true;
    } finally {
      if (!taken) {
        node.stopDeciding(); // otherwise the next holder would not learn of this JVM's leases
        leases.close();
      }
    }
  }

  private void take(SeatLock lock, LeaseDirectory leases) {
    LeaseTable table =
        new LeaseTable(node, node.newSlots(), enforcements, leases, directory.usage());
    Suspensions suspensions =
        new Suspensions(clock, table, directory.path(), Suspensions::installed);
    LocalAuthority authority =
        new LocalAuthority(node, table, enforcements, discovery, suspensions, null);
    MemoryReclaim reclaims = new MemoryReclaim(node, table, discovery, suspensions);
    SeatServer serves = new SeatServer(node, authority, loop);
    HealthWatch sees = null;
    boolean begun = false;
    try {
      new TakeOver(node, authority, serves).restore(leases.readAll());
      reclaims.takeOver();
      enforcements.begin(node.gpus()); // before any request: it may take long
      serves.listen(directory.socket(), enforcements::refuseFiles);
      reclaims.start();
      sees = HealthWatch.start(node, table, discovery);
      begun = true;
    } finally {
      if (!begun) { // out of disk space, or of threads
        serves.close();
        loop.abandon(); // otherwise the clients that have connected would stay with it
        table.stopDeciding();
        reclaims.stop();
        if (sees != null) {
          sees.close();
        }
        table.giveUp();
        enforcements.close();
        stopped();
      }
    }
    holding = new Holding(node, lock, serves, leases, reclaims, sees);
    node.authority(authority);
  }

  private void watch() {
    try {
      watch = SeatWatch.start(node, loop, enforcements::atWork, this::giveUp);
    } catch (OutOfMemoryError e) { // no thread can be started
      if (holding != null) {
        holding.server().close();
        loop.abandon();
        holding.stopDeciding();
      }
      enforcements.close();
      stopped();
      throw e;
    }
  }

  private LeaseDirectory openLeases() {
    try {
      return new LeaseDirectory(directory.leases());
    } catch (IOException e) {
      throw new VgpuException(
          "the leases cannot be opened: path=" + directory.leases() + ": " + e.getMessage(), e);
    }
  }

  // ---- as a client

  private void work(SeatClient with) {
    boolean works = false;
    try {
      beginWork(with);
      works = true;
    } finally {
      if (!works) {
        with.close(); // another attempt connects anew
      }
    }
  }

  private void beginWork(SeatClient with) {
    HolderOptions.check(with, node, asked);
    List<SeatCalls.Call> claims = new ArrayList<>();
    List<Lease> claimed = new ArrayList<>();
    node.exclusively(
        () -> {
          node.manage(with.gpus(), with.settings());
          client = with;
          node.turns().forEach(turns -> turns.connect(with));
          for (Lease lease : node.leases()) {
            SeatCalls.Call claim = with.claim(lease);
            if (claim != null) {
              claims.add(claim);
              claimed.add(lease);
            }
          }
          with.claimed();
          node.authority(with);
          return with;
        });
    if (node.listeners().areAny()) {
      with.listen();
    }
    loop.ticker(this::report);
    for (int i = 0; i < claims.size(); i++) {
      checkClaimed(with, claims.get(i), claimed.get(i));
    }
    log.debug("the seat is held by {}", with.holder());
    if (with.isLost()) {
      lost("it died at once"); // before the client was set here, so no other thread handles it
    }
    node.workers().execute(new Rehearsal(node, discovery, enforcements)::run);
  }

  private void checkClaimed(SeatClient with, SeatCalls.Call claim, Lease lease) {
    try {
      Object ignored = claim.answer(WELCOME_NS);
    } catch (SeatLostException e) {
      log.debug("the seat's holder died again", e); // the next holder is asked
    } catch (RuntimeException e) {
      if (claim.isRefused()) {
        log.error("a virtual GPU is lost and closed: id={}", lease.id, e);
        lease.close();
      } else {
        log.warn("the seat's holder is asked again for a virtual GPU: id={}", lease.id, e);
        with.close(); // it may only be slow; over a new connection, all leases are claimed again
      }
    }
  }

  /** A connection was closed. It matters only if it led to the process that decides. */
  private void lost(String reason) {
    SeatClient had = client;
    if (had != null && had.isLost() && !node.isShutDown()) {
      try {
        node.workers().execute(() -> rejoin(reason));
      } catch (OutOfMemoryError e) {
        log.error("no thread can be started to look for the seat; trying again", e);
        long againNs = clock.nanoTime() + AGAIN_NS;
        loop.ticker(nowNs -> nowNs - againNs < 0 ? againNs : lostStill(reason));
      }
    }
  }

  private long lostStill(String reason) {
    loop.ticker(null);
    lost(reason);
    return Long.MAX_VALUE;
  }

  /** Finds or becomes the next holder of the seat. Retries until the node is shut down. */
  private void rejoin(String reason) {
    joining.lock();
    try {
      SeatClient had = client;
      if (!gaveUp && (had == null || !had.isLost())) {
        return; // another seat was found already
      }
      gaveUp = false;
      long startNs = clock.nanoTime();
      long waitNs = AGAIN_NS;
      node.turns().forEach(turns -> turns.connect(null));
      while (!node.isShutDown()) {
        try {
          directory.prepare(); // it may have been removed
          renewLoop();
          join();
          log.info(
              "the seat's holder is gone ({}); {} after {} ms",
              reason,
              client == null ? "this process holds the seat now" : "another process holds it now",
              (clock.nanoTime() - startNs) / MILLI_NS);
          node.workers().execute(() -> node.leases().forEach(Lease::endIfDrained));
          return;
        } catch (RuntimeException | IOException | Error e) { // whatever it is: nobody else retries
          if (waitNs == AGAIN_NS) {
            log.error("no seat available; pending calls keep waiting; retrying", e);
          }
          LockSupport.parkNanos(this, waitNs);
          waitNs = Math.min(2 * waitNs, MOST_AGAIN_NS);
        }
      }
    } finally {
      joining.unlock();
    }
  }

  private void renewLoop() throws IOException {
    if (!loop.isAlive()) {
      LinkLoop made = new LinkLoop(clock);
      node.exclusively(
          () -> {
            loop = made;
            if (node.isShutDown()) { // otherwise nobody would close it
              made.close();
            }
            return made;
          });
    }
  }

  /** Reports periodically to the seat's holder what this process's calls have used. */
  private long report(long nowNs) {
    SeatClient to = client;
    if (to == null || to.isLost()) {
      return Long.MAX_VALUE;
    }
    if (nowNs - reportedNs >= REPORT_EVERY_NS) {
      reportedNs = nowNs;
      reported.keySet().removeIf(id -> node.lease(id) == null);
      for (Lease lease : node.leases()) {
        UsageReading usage = lease.gate.usage();
        if (!usage.equals(reported.put(lease.id, usage))) {
          to.report(lease, usage);
        }
      }
    }
    return reportedNs + REPORT_EVERY_NS;
  }

  /**
   * Gives the seat up, because this process holds it but does not serve. Another process takes it
   * at once; this one becomes its client as soon as it can. If its work does not stop in time, it
   * hangs and so writes nothing: the seat's lock is released anyway. Only a part of a GPU in work
   * is waited for, since the next holder could not tell what becomes of it.
   */
  private void giveUp(String reason) {
    Holding held = holding;
    if (node.isShutDown() || held == null) {
      return;
    }
    log.error("this process gives the seat up: {}", reason);
    held.server().close(); // before the links: clients that look for a seat must not find this one
    loop.abandon();
    LeaseTable table = held.server().table();
    table.stopDeciding();
    List<Thread> stopping =
        List.of(
            ProcessorWaits.started(work -> new Thread(work, "vgpu-seat-stop"), held::stopDeciding),
            ProcessorWaits.started(
                work -> new Thread(work, "vgpu-seat-close"), enforcements::close));
    ProcessorWaits.awaitEnd(stopping, clock);
    long beganNs = clock.nanoTime();
    while (table.isOnParts() && clock.nanoTime() - beganNs < OPENING_NS) {
      LockSupport.parkNanos(this, RETRY_NS);
    }
    gpuLocks.close();
    held.release();
    while (stopping.stream().anyMatch(Thread::isAlive)) {
      LockSupport.parkNanos(this, AGAIN_NS);
    }
    stopped();
    gaveUp = true;
    rejoin(reason);
  }

  private void stopped() {
    enforcements =
        node.exclusively(
            () -> {
              holding = null;
              return enforcements.anew();
            });
  }

  // ---- shutdown

  /** Waits for the threads. The caller must hold no lock: the threads may need it to end. */
  private void awaitEnd(long deadlineNs) {
    Holding held = holding;
    if (held != null) {
      held.reclaim().awaitEnd(deadlineNs);
    }
    loop.awaitEnd(deadlineNs);
  }

  /** Gives the seat up on shutdown; another process takes it. */
  private void leave() {
    node.exclusively(
        () -> {
          Optional<Holding> held = Optional.ofNullable(holding);
          attempt(() -> Optional.ofNullable(client).ifPresent(SeatClient::close));
          attempt(() -> Optional.ofNullable(watch).ifPresent(SeatWatch::close));
          attempt(() -> held.ifPresent(Holding::stopServing));
          attempt(enforcements::close);
          attempt(() -> held.ifPresent(Holding::close));
          attempt(loop::close);
          attempt(gpuLocks::close);
          attempt(() -> held.ifPresent(had -> had.lock().close()));
          return loop;
        });
  }

  /** If one step fails, the others release what they can, the seat's lock above all. */
  private static void attempt(Runnable step) {
    try {
      step.run();
    } catch (RuntimeException | Error e) {
      log.error("something was not released when this process left the seat", e);
    }
  }
}
