package dev.vgpu.core.seat;

import dev.vgpu.VgpuException;
import dev.vgpu.core.book.Asked;
import dev.vgpu.core.book.BookedCalls;
import dev.vgpu.core.book.Booking;
import dev.vgpu.core.book.GpuBook;
import dev.vgpu.core.book.LeaseGrants;
import dev.vgpu.core.book.LeaseTable;
import dev.vgpu.core.disk.LeaseRecord;
import dev.vgpu.core.disk.Member;
import dev.vgpu.core.disk.ProcessIdentity;
import dev.vgpu.core.node.LocalAuthority;
import dev.vgpu.core.node.Node;
import dev.vgpu.core.wire.EventValues;
import dev.vgpu.core.wire.Link;
import dev.vgpu.core.wire.LinkLoop;
import dev.vgpu.core.wire.Message;
import dev.vgpu.core.wire.RequestValues;
import dev.vgpu.files.OpenFiles;
import dev.vgpu.request.GpuId;
import dev.vgpu.request.VirtualGpuRequest;
import dev.vgpu.spi.UnreadFiles;
import dev.vgpu.watch.GpuEvent;
import java.io.IOException;
import java.net.StandardProtocolFamily;
import java.net.UnixDomainSocketAddress;
import java.nio.channels.ServerSocketChannel;
import java.nio.channels.SocketChannel;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Collection;
import java.util.HashMap;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.locks.ReentrantLock;
import java.util.function.Function;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Serves the other processes of the node while this one holds the seat. The loop's thread never
 * waits, neither for the table's lock nor for a file. Work that may wait runs at four desks, so
 * that slow requests do not delay quick ones. Confined to the loop's thread, except where stated.
 */
final class SeatServer implements AutoCloseable {
  private static final Logger log = LoggerFactory.getLogger(SeatServer.class);
  private static final int BACKLOG = 512;
  private static final int MOST_SESSIONS = 512;
  private static final int MOST_UNGREETED = 64;

  private static final long MILLI_NS = 1_000_000;

  /**
   * How long a living process may take to return with its leases. On an overloaded machine that
   * takes seconds. If the process has closed its pool in the meantime, its leases stay reserved for
   * this long.
   */
  private static final long GRACE_NS = 10_000 * MILLI_NS;

  private static final long AWAITED_EVERY_NS = 2 * MILLI_NS;

  /** If the last look was longer ago, this process was stopped and could not receive messages. */
  private static final long MOST_BETWEEN_LOOKS_NS = 100 * MILLI_NS;

  private final Node node;
  private final LocalAuthority authority;
  private final LinkLoop loop;
  private final Set<ClientSession> sessions = new LinkedHashSet<>();
  private final Set<ClientSession> ungreeted = new LinkedHashSet<>();
  private final int mostSessions = OpenFiles.part(MOST_SESSIONS);
  private final int mostLeasesOfOne = OpenFiles.part(LeaseGrants.MOST_LEASES) / 2;
  private final int mostUngreeted = Math.min(MOST_UNGREETED, mostSessions / 4);

  private final SeatDesks desks = new SeatDesks();

  /** The line for the seat's own work. */
  private final Desk.Line own = desks.orders.new Line(2);

  /** Clients that listen for events; on any thread. */
  private final Set<ClientSession> listening = ConcurrentHashMap.newKeySet();

  private final ReentrantLock claiming = new ReentrantLock();
  private @Nullable Runnable stopListening;

  /** Leases whose process is not connected. */
  private final Set<RemoteLease> awaited = ConcurrentHashMap.newKeySet();

  private final SeatUsers users;
  private final KeptLeases kept;
  private @Nullable ServerSocketChannel server;
  private long lookedForAwaitedNs;
  private boolean looksForAwaited;

  SeatServer(Node node, LocalAuthority authority, LinkLoop loop) {
    this.node = node;
    this.authority = authority;
    this.loop = loop;
    this.users = new SeatUsers(authority.table());
    this.kept = new KeptLeases(own, () -> table().releaseUnused(), node.clock().nanoTime());
    authority.table().ends().whenKept(this::lookAgain);
  }

  Node node() {
    return node;
  }

  LocalAuthority authority() {
    return authority;
  }

  LeaseTable table() {
    return authority.table();
  }

  LinkLoop loop() {
    return loop;
  }

  SeatDesks desks() {
    return desks;
  }

  /** Accepts connections. Called once, by the thread that has taken the seat. */
  void listen(Path socket, Function<Path, Optional<UnreadFiles>> protect) {
    try {
      Files.deleteIfExists(socket); // left by the last holder, which is gone
      ServerSocketChannel channel = ServerSocketChannel.open(StandardProtocolFamily.UNIX);
      server = channel;
      channel.bind(UnixDomainSocketAddress.of(socket), BACKLOG);
      loop.listen(channel, users.letIn(socket, protect), accepted -> accept());
      loop.ticker(this::tick);
    } catch (IOException e) {
      throw new VgpuException(
          "the seat's socket cannot be made: path=" + socket + ": " + e.getMessage(), e);
    }
  }

  /** The most leases that one process may have. */
  int mostLeasesOfOne() {
    return mostLeasesOfOne;
  }

  /** {@return the users that may connect} */
  SeatUsers users() {
    return users;
  }

  private Link.@Nullable Handler accept() {
    if (sessions.size() >= mostSessions - mostUngreeted && !closeIdleSession()) {
      log.warn("a process was turned away: {} are connected already", sessions.size());
      return null;
    }
    if (ungreeted.size() >= mostUngreeted && !ungreeted.isEmpty()) {
      ClientSession oldest = ungreeted.iterator().next();
      ungreeted.remove(oldest);
      oldest.close("it has not said who it is, and others want to");
    }
    ClientSession session = new ClientSession(this);
    ungreeted.add(session);
    return session;
  }

  /** Closes the idle session that has been connected longest; returns whether there was one. */
  private boolean closeIdleSession() {
    for (ClientSession session : sessions) {
      if (session.isIdle()) {
        sessions.remove(session);
        session.close("it has nothing here, and others want to connect");
        return true;
      }
    }
    return false;
  }

  void greeted(ClientSession session) {
    if (ungreeted.remove(session)) { // otherwise it was closed in the meantime
      sessions.add(session);
    }
  }

  /** Whether one more process of a member may connect: one user cannot keep the others out. */
  boolean hasRoomFor(Member member) {
    long connected =
        sessions.stream()
            .filter(session -> session.member().filter(member::isSameUser).isPresent())
            .count();
    return connected < mostSessions / LeaseGrants.PARTS_FOR_MEMBERS;
  }

  /** Adds a client that listens for events. */
  void listen(ClientSession session) {
    if (listening.add(session) && stopListening == null) {
      stopListening = node.listeners().listen(this::tell);
    }
  }

  /** Runs on one thread at a time. */
  private void tell(GpuEvent event) {
    for (ClientSession session : listening) {
      if (session.user().maySee(event)) {
        session.tellNews(EventValues.of(event));
      }
    }
  }

  // ---- leases of other processes

  /** On any thread. */
  RemoteLease remoteLease(
      String id, List<GpuBook> on, VirtualGpuRequest request, ProcessIdentity owner) {
    GpuBook first = on.get(0);
    long turnNs = node.settings().of(first.gpu.id()).shortestTurn().toNanos();
    return new RemoteLease(id, first.seat, turnNs, request, owner);
  }

  /**
   * Books a lease on disk of another process, which may return for it. A lease of this process that
   * it does not know was never granted, or is closed; it ends at once, as nobody returns for it.
   * Called before clients can connect.
   */
  void restore(LeaseRecord record, List<GpuBook> books) {
    RemoteLease lease = restore(record, owner -> table().restore(record, books, owner));
    if (record.owner().equals(node.self()) && record.ownerKey().equals(node.secret().key())) {
      endAwaited(lease);
    }
  }

  private RemoteLease restore(LeaseRecord record, Function<Asked.Claimant, Booking> book) {
    RemoteLease[] made = new RemoteLease[1];
    Booking booking =
        book.apply(
            new Owner(record) {
              @Override
              public boolean isAnotherProcess() {
                return true;
              }

              @Override
              public BookedCalls calls(String id, List<GpuBook> on, VirtualGpuRequest request) {
                made[0] = remoteLease(id, on, request, record.owner());
                return made[0];
              }
            });
    users.granted(record.id(), record.member());
    authority.takeOver(booking);
    booking.gate.adopt(null);
    await(made[0]);
    return made[0];
  }

  /** The claimant for a process that is not connected. */
  abstract static class Owner implements Asked.Claimant {
    private final LeaseRecord record;

    Owner(LeaseRecord record) {
      this.record = record;
    }

    @Override
    public String ownerKey() {
      return record.ownerKey();
    }

    @Override
    public Optional<Member> member() {
      return record.member();
    }

    @Override
    public Object owner() {
      return this;
    }

    @Override
    public boolean isClosed() {
      return false;
    }

    @Override
    public ProcessIdentity process() {
      return record.owner();
    }
  }

  private void await(RemoteLease lease) {
    lease.gate.disconnected();
    lease.awaitedUntilNs = node.clock().nanoTime() + GRACE_NS;
    awaited.add(lease);
  }

  /** A process claims a lease that it had before. On any thread. */
  RemoteLease claim(ClientSession session, Message message) {
    String id = message.text(Protocol.LEASE);
    if (table().booking(id).isEmpty()) {
      restoreClaimed(id, session, message);
    }
    Booking booking =
        table()
            .booking(id)
            .orElseThrow(() -> new IllegalStateException("the virtual GPU has ended: id=" + id));
    if (!isOwner(session, booking) || !(booking.calls instanceof RemoteLease lease)) {
      throw new IllegalStateException(
          "the virtual GPU is another process's: id=" + id + " owner=" + booking.owner);
    }
    claiming.lock();
    try {
      if (lease.isClosed()) {
        throw new IllegalStateException("the virtual GPU has ended: id=" + id);
      }
      awaited.remove(lease);
      lease.session = session;
      lease.awaitedUntilNs = 0;
    } finally {
      claiming.unlock();
    }
    return lease;
  }

  /** Any process can state another's pid and start time, but only the owner knows its secret. */
  private static boolean isOwner(ClientSession session, Booking booking) {
    return booking.owner.equals(session.process())
        && booking.ownerKey.equals(session.ownerKey())
        && session.user().owns(booking);
  }

  /**
   * The lease is not on disk, so the process's own statement is accepted, but not a member's: the
   * id could be of another user's lease that has ended.
   */
  private void restoreClaimed(String id, ClientSession session, Message message) {
    if (session.member().isPresent()) {
      throw new IllegalStateException("the virtual GPU has ended: id=" + id);
    }
    session.checkHasRoom();
    VirtualGpuRequest request = RequestValues.request(message.under(Protocol.REQUEST));
    List<GpuId> gpus = RequestValues.gpus(message::find);
    List<GpuBook> books =
        table().books(gpus).orElseThrow(() -> new IllegalStateException("no such GPU: " + gpus));
    if (!LeaseRecord.isId(id)
        || books.size() != request.gpuCount()
        || !books.stream().allMatch(book -> book.fits(request))) {
      throw new IllegalStateException(
          "the virtual GPU's capacity was granted to other tenants: id=" + id);
    }
    LeaseRecord record =
        new LeaseRecord(
            id,
            gpus,
            request,
            session.process(),
            Optional.empty(),
            List.of(),
            Optional.empty(),
            Optional.empty(),
            session.ownerKey(),
            Optional.empty());
    RemoteLease ignored = restore(record, owner -> table().claim(record, books, owner));
  }

  /** A process has claimed all the leases that it still has. On any thread. */
  void claimed(ClientSession session, Set<String> ids) {
    for (RemoteLease lease : List.copyOf(awaited)) {
      if (isOwner(session, lease.booking()) && !ids.contains(lease.id)) {
        endAwaited(lease);
      }
    }
  }

  private void endAwaited(RemoteLease lease) {
    claiming.lock();
    try {
      if (awaited.remove(lease)) { // otherwise its process has just returned
        end(lease);
      }
    } finally {
      claiming.unlock();
    }
  }

  /** A lease was closed by its process, or its process is dead. On any thread. */
  void end(RemoteLease lease) {
    if (lease.close()) {
      lease.gate.ended();
      LeaseTable table = table();
      table.ends().ending(lease.booking());
      own.add(() -> table.ends().ended(lease.booking()));
    }
  }

  /** A connection was closed. */
  void left(ClientSession session) {
    sessions.remove(session);
    ungreeted.remove(session);
    listening.remove(session);
  }

  /** Ends or awaits the leases of a process that has disconnected. On any thread. */
  void gone(ClientSession session, Collection<RemoteLease> leases) {
    claiming.lock();
    try {
      for (RemoteLease lease : leases) {
        if (lease.session != session) {
          continue; // its process has connected again already
        }
        if (!session.process().isAlive()) {
          end(lease);
        } else if (!lease.isClosed()) {
          await(lease); // it is dying, or will connect again
        }
      }
    } finally {
      claiming.unlock();
    }
    loop.wakeup();
  }

  /**
   * Ends awaited leases whose process is dead or late. Time in which the process or the seat was
   * stopped does not count.
   */
  private void lookForAwaited(long nowNs) {
    long sinceNs = looksForAwaited ? nowNs - lookedForAwaitedNs : 0;
    boolean wasStopped = sinceNs > MOST_BETWEEN_LOOKS_NS;
    Map<ProcessIdentity, ProcessIdentity.State> states = new HashMap<>();
    for (RemoteLease lease : List.copyOf(awaited)) {
      ProcessIdentity.State state =
          states.computeIfAbsent(lease.booking().owner, ProcessIdentity::state);
      if (state == ProcessIdentity.State.DEAD) {
        endAwaited(lease);
      } else if (state == ProcessIdentity.State.STOPPED) {
        awaitUntil(lease, nowNs + GRACE_NS);
      } else if (wasStopped) {
        awaitUntil(lease, lease.awaitedUntilNs + sinceNs);
      } else if (nowNs - lease.awaitedUntilNs >= 0) {
        endAwaited(lease);
      }
    }
  }

  private void awaitUntil(RemoteLease lease, long untilNs) {
    claiming.lock();
    try {
      if (awaited.contains(lease)) { // otherwise its process has just returned
        lease.awaitedUntilNs = untilNs;
      }
    } finally {
      claiming.unlock();
    }
  }

  private long tick(long nowNs) {
    long nextNs = Long.MAX_VALUE;
    lookForAwaited(nowNs);
    looksForAwaited = !awaited.isEmpty();
    if (looksForAwaited) {
      lookedForAwaitedNs = nowNs;
      nextNs = nowNs + AWAITED_EVERY_NS;
    }
    return Math.min(nextNs, kept.tick(nowNs));
  }

  /** A lease has ended and is kept for its programs. On any thread. */
  private void lookAgain() {
    kept.lookAgain();
    loop.wakeup();
  }

  /** Stops listening, and starts no more requests. */
  @Override
  public void close() {
    desks.close();
    if (stopListening != null) {
      stopListening.run();
    }
    ServerSocketChannel channel = server;
    if (channel != null) {
      try (channel) {
        if (channel.getLocalAddress() instanceof UnixDomainSocketAddress bound) {
          Files.deleteIfExists(bound.getPath());
        }
        // The kernel keeps those that it has let in for as long as the loop's selector knows the
        // channel: for ever, if the loop's thread hangs.
        channel.configureBlocking(false);
        for (SocketChannel each = channel.accept(); each != null; each = channel.accept()) {
          loop.turnAway(each);
        }
      } catch (IOException e) {
        log.debug("the seat's socket could not be closed", e);
      }
    }
  }
}
