package dev.vgpu.core.seat;

import static dev.vgpu.core.seat.Protocol.LEASE;
import static dev.vgpu.core.seat.Protocol.NUMBER;
import static dev.vgpu.core.seat.Protocol.TURN;
import static dev.vgpu.core.seat.Protocol.USAGE;

import dev.vgpu.GpuCapacityException;
import dev.vgpu.core.book.Asked;
import dev.vgpu.core.book.Booking;
import dev.vgpu.core.book.GpuBook;
import dev.vgpu.core.book.LeaseTable;
import dev.vgpu.core.book.PendingRequest;
import dev.vgpu.core.disk.Member;
import dev.vgpu.core.disk.OwnerSecret;
import dev.vgpu.core.disk.ProcessIdentity;
import dev.vgpu.core.disk.SeatLostException;
import dev.vgpu.core.node.LocalAuthority;
import dev.vgpu.core.turn.RemoteGate;
import dev.vgpu.core.turn.UsageReading;
import dev.vgpu.core.wire.EventValues;
import dev.vgpu.core.wire.LeaseValues;
import dev.vgpu.core.wire.Link;
import dev.vgpu.core.wire.LinkLoop;
import dev.vgpu.core.wire.MalformedMessageException;
import dev.vgpu.core.wire.Message;
import dev.vgpu.request.VirtualGpuRequest;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.concurrent.ConcurrentHashMap;
import java.util.function.Consumer;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * One client process, as the seat's holder serves it. Confined to the loop's thread, except where
 * stated.
 *
 * <p>Messages about turns are handled at once. Everything else runs at the desks of the {@link
 * SeatServer}, in order where the order matters. If a client sends faster than it is served, its
 * socket is not read for a while.
 */
final class ClientSession implements Link.Handler, Asked.Claimant, RemoteGate.Orders {
  private static final Logger log = LoggerFactory.getLogger(ClientSession.class);
  private static final int MOST_PENDING = 1_000;
  private static final int MOST_EVENT_BYTES = 2 << 10;
  private static final int MOST_EVENTS_A_SECOND = 100;
  private static final long SECOND_NS = 1_000_000_000;
  private static final ProcessIdentity NOBODY = new ProcessIdentity(0, 0);

  private final SeatServer server;

  /** Also used by the thread that grants a waiting request. */
  private final Map<String, RemoteLease> leases = new ConcurrentHashMap<>();

  private final Map<Long, Waiting> pending = new ConcurrentHashMap<>();
  private volatile @Nullable Link link;
  private volatile boolean closed;
  private volatile ProcessIdentity process = NOBODY;
  private volatile String ownerKey = "";
  private volatile ClientUser user;
  private final ClientLines lines;
  private boolean helloSaid;
  private long eventsSinceNs;
  private int events;

  ClientSession(SeatServer server) {
    this.server = server;
    this.lines = new ClientLines(server.desks());
    this.user = new ClientUser(server.users(), Optional.empty(), Optional.empty());
  }

  /** Whether closing it loses nothing. */
  boolean isIdle() {
    return leases.isEmpty() && pending.isEmpty() && lines.areEmpty();
  }

  private record Waiting(PendingRequest request, Link from, long bytes) {}

  boolean isGreeted() {
    return process.pid() != NOBODY.pid();
  }

  void close(String reason) {
    Link to = link;
    if (to != null) {
      to.close(reason);
    }
  }

  // ---- as the table sees it

  @Override
  public Object owner() {
    return this;
  }

  @Override
  public boolean isClosed() {
    return closed;
  }

  @Override
  public boolean isAnotherProcess() {
    return true;
  }

  @Override
  public ProcessIdentity process() {
    return process;
  }

  @Override
  public String ownerKey() {
    return ownerKey;
  }

  @Override
  public Optional<Member> member() {
    return user.member();
  }

  /** {@return the user that the client runs as} */
  ClientUser user() {
    return user;
  }

  @Override
  public RemoteLease calls(String id, List<GpuBook> on, VirtualGpuRequest request) {
    RemoteLease lease = server.remoteLease(id, on, request, process);
    lease.session = this;
    lease.gate.connected(this, 0, false, false, UsageReading.NONE);
    leases.put(id, lease);
    server.users().granted(id, member());
    return lease;
  }

  // ---- orders to the process; on any thread that holds a GPU's seat

  private void tell(Message message) {
    Link to = link;
    if (to != null) {
      to.send(message);
    }
  }

  /** Sends a message that the client can do without. On any thread. */
  void tellNews(Message message) {
    Link to = link;
    if (to != null) {
      to.sendNews(message);
    }
  }

  @Override
  public void open(String lease, long turn, boolean contended) {
    tell(
        new Message(Protocol.OPEN)
            .with(LEASE, lease)
            .with(TURN, turn)
            .with(Protocol.CONTENDED, contended));
  }

  @Override
  public void shut(String lease, long turn) {
    tell(new Message(Protocol.SHUT).with(LEASE, lease).with(TURN, turn));
  }

  @Override
  public void preempt(String lease, long turn) {
    tell(new Message(Protocol.PREEMPT).with(LEASE, lease).with(TURN, turn));
  }

  @Override
  public void contended(String lease, boolean contended) {
    tell(new Message(Protocol.CONTENDED).with(LEASE, lease).with(Protocol.CONTENDED, contended));
  }

  /** Asks the process to free memory. On any thread. */
  void reclaim(String lease, long wantedBytes) {
    tell(new Message(Protocol.RECLAIM).with(LEASE, lease).with("bytes", wantedBytes));
  }

  // ---- messages from the process

  @Override
  public void received(Link from, Message message) {
    link = from;
    if (!isGreeted()) {
      hello(from, message);
      return;
    }
    switch (message.type()) {
      case Protocol.WANT,
          Protocol.IDLE,
          Protocol.DRAINED,
          Protocol.REPORT,
          Protocol.RECLAIMABLE,
          Protocol.RECLAIMED,
          Protocol.ATTACHED -> {
        if (lines.areFreeOfClaims()) {
          work(message);
        } else {
          lines.claimOrFollow(from, message, () -> work(message));
        }
      }
      case Protocol.CLAIM ->
          lines.claimOrFollow(from, message, () -> answer(from, message, reply -> claim(message)));
      case Protocol.LISTEN -> server.listen(this);
      case EventValues.TYPE -> publish(message);
      case Protocol.CLOSE, Protocol.STARTED, Protocol.CLAIMED, Protocol.CANCEL ->
          lines.inOrder(from, message, () -> work(message));
      case Protocol.ACQUIRE, Protocol.ENQUEUE ->
          lines.inOrder(
              from,
              message,
              () -> ClientLines.answer(from, message, reply -> enqueue(from, message)));
      default -> operation(from, message);
    }
  }

  private void operation(Link from, Message message) {
    Operation<?, ?> operation = Operation.ALL.get(message.type());
    if (operation == null) {
      throw new MalformedMessageException("it asks for " + message.type());
    }
    Runnable task = () -> answer(from, message, reply -> operation.serve(this, message, reply));
    switch (operation.line()) {
      case IN_ORDER -> lines.inOrder(from, message, task);
      case READ -> lines.read(from, message, task);
      case READ_FILES -> lines.readFiles(from, message, task);
      case PREPARE -> lines.prepare(from, message, task);
      case CHANGE -> lines.change(from, message, task);
    }
  }

  /**
   * Publishes a client's event, unless the event is too large or there are too many in a second.
   */
  private void publish(Message message) {
    long nowNs = server.node().clock().nanoTime();
    if (nowNs - eventsSinceNs >= SECOND_NS) {
      eventsSinceNs = nowNs;
      events = 0;
    }
    if (message.bytes() <= MOST_EVENT_BYTES && events++ < MOST_EVENTS_A_SECOND) {
      var event = EventValues.event(message);
      if (member().isPresent() && !leases.containsKey(event.virtualGpu())) {
        return; // about another user's virtual GPU
      }
      server.node().listeners().publish(at -> event);
    }
  }

  private void work(Message message) {
    try {
      told(message);
    } catch (ClientLines.UnknownLeaseException | SeatLostException e) {
      log.debug("{}", e.getMessage());
    }
  }

  private void told(Message message) {
    switch (message.type()) {
      case Protocol.WANT -> lease(message).gate.wanted();
      case Protocol.IDLE -> lease(message).gate.idle();
      case Protocol.DRAINED ->
          lease(message)
              .gate
              .drained(
                  message.number(TURN), message.flag("waits"), LeaseValues.usage(message, USAGE));
      case Protocol.REPORT -> lease(message).gate.reported(LeaseValues.usage(message, USAGE));
      case Protocol.CLOSE -> closeLease(message);
      case Protocol.STARTED -> started(lease(message).booking(), process(message));
      case Protocol.RECLAIMABLE -> lease(message).hasReclaimHandler = true;
      case Protocol.RECLAIMED -> lease(message).reclaimed();
      case Protocol.ATTACHED -> {
        RemoteLease lease = lease(message);
        lease.gate.reported(LeaseValues.usage(message, USAGE));
        lease.booking().gate.countProcessesOnly(message.number("callsNs"));
      }
      case Protocol.CLAIMED -> server.claimed(this, leases.keySet());
      default -> cancel(message.number("of"));
    }
  }

  private void started(Booking booking, ProcessIdentity program) {
    if (user.mayName(program)) {
      server.table().started(booking, program);
    }
  }

  private static ProcessIdentity process(Message message) {
    return new ProcessIdentity(message.number("pid"), message.number("start"));
  }

  private RemoteLease lease(Message message) {
    return lease(message.text(LEASE));
  }

  /** {@return the client's lease with that name} */
  RemoteLease lease(String id) {
    RemoteLease lease = leases.get(id);
    if (lease == null) {
      // The lease has just ended, or the message was meant for an earlier holder of the seat.
      throw new ClientLines.UnknownLeaseException(id);
    }
    return lease;
  }

  private void hello(Link from, Message message) {
    if (!message.type().equals(Protocol.HELLO)) {
      throw new MalformedMessageException("it does not say who it is first");
    }
    Message reply = new Message(Protocol.REPLY).with(NUMBER, message.number(NUMBER));
    long version = message.number("version");
    if (version != Protocol.VERSION) {
      from.send(Protocol.failure(reply, Protocol.mismatch(version, server.node().self())));
      from.close("it speaks version " + version);
      return;
    }
    if (helloSaid) {
      throw new MalformedMessageException("it says who it is twice");
    }
    helloSaid = true;
    lines.inOrder(
        from,
        message,
        () -> ClientLines.answer(from, message, answer -> greet(from, message, answer)));
  }

  private void greet(Link from, Message message, Message reply) {
    if (closed) {
      return;
    }
    ClientUser runsAs = server.users().user(from.channel());
    Optional<Member> member = runsAs.member();
    String key = OwnerSecret.key(message.text("secret"));
    ProcessIdentity says = process(message);
    runsAs.checkMayBe(says);
    reply.with("pid", server.node().self().pid()).with("start", server.node().self().start());
    Protocol.settings(reply, server.node().settings());
    LeaseValues.putGpus(reply, server.node().gpus());
    server
        .loop()
        .perform(
            () -> {
              if (member.isPresent() && !server.hasRoomFor(member.get())) {
                String tooMany = "too many processes of this user are connected";
                from.send(Protocol.failure(reply, new IllegalStateException(tooMany)));
                from.close(tooMany);
                return;
              }
              user = runsAs;
              ownerKey = key;
              process = says;
              from.peer(LinkLoop.Peer.CLIENT);
              server.greeted(this);
              from.send(reply);
            });
  }

  private void answer(Link from, Message message, Consumer<Message> work) {
    ClientLines.answer(
        from,
        message,
        reply -> {
          try {
            work.accept(reply);
          } catch (GpuCapacityException e) {
            throw user.shown(e);
          }
          from.send(reply);
        });
  }

  // ---- what operations need

  LeaseTable table() {
    return server.table();
  }

  LocalAuthority authority() {
    return server.authority();
  }

  private Asked asked(VirtualGpuRequest request) {
    checkHasRoom();
    return new Asked(user.demanding(request), this);
  }

  /** Throws if this process has as many leases as one process may have. */
  void checkHasRoom() {
    int most = server.mostLeasesOfOne();
    if (leases.size() >= most) {
      throw new IllegalStateException("too many virtual GPUs in one process: limit=" + most);
    }
  }

  private void enqueue(Link from, Message message) {
    long number = message.number(NUMBER);
    if (pending.containsKey(number)) {
      throw new MalformedMessageException("it gives a number to two requests: " + number);
    }
    if (pending.size() >= MOST_PENDING) {
      throw new IllegalStateException(ClientLines.TOO_MANY);
    }
    long bytes = ClientLines.bytes(message);
    PendingRequest waiting =
        new PendingRequest(
            asked(Operation.REQUEST.get().apply(message)),
            settled -> {
              from.hold(-bytes);
              replySettled(number, settled);
            });
    pending.put(number, new Waiting(waiting, from, bytes));
    from.hold(bytes);
    try {
      if (message.type().equals(Protocol.ACQUIRE)) {
        table().decide(waiting);
      } else {
        table().enqueue(waiting);
      }
    } catch (RuntimeException | Error e) {
      if (!waiting.isSettled()) {
        pending.remove(number);
        from.hold(-bytes);
      }
      throw e;
    }
  }

  private void replySettled(long number, PendingRequest settled) {
    pending.remove(number);
    Message reply = new Message(Protocol.REPLY).with(NUMBER, number);
    try {
      Booking booking = settled.booking();
      Operation.GRANTED.put().accept(reply, new Operation.Granted(booking.id, booking.gpus()));
    } catch (SeatLostException e) {
      return; // the client asks the next holder
    } catch (RuntimeException e) {
      Message ignored = Protocol.failure(reply, user.shown(e));
    }
    tell(reply);
  }

  private void cancel(long number) {
    Waiting waiting = pending.remove(number);
    if (waiting != null) {
      PendingRequest request = waiting.request();
      Optional<String> refusal = server.table().giveUp(request);
      if (refusal.isPresent()) {
        waiting.from().hold(-waiting.bytes());
        server.table().publishRefused(request.asked.request(), refusal.get());
        tell(new Message(Protocol.REPLY).with(NUMBER, number).with("refusal", refusal.get()));
      }
    }
  }

  private void claim(Message message) {
    RemoteLease lease = server.claim(this, message);
    try {
      UsageReading usage = LeaseValues.usage(message, USAGE);
      boolean runs = message.flag("runs");
      lease.gate.connected(this, message.number(TURN), runs, message.flag("waits"), usage);
      if (message.flag("attached")) {
        lease.booking().gate.countProcessesOnly(message.number("callsNs"));
      }
      lease.booking().gate.adopt(null);
      leases.put(lease.id, lease); // last: messages about its turns wait until then
    } finally {
      if (leases.get(lease.id) != lease) { // otherwise it would outlive its process
        server.gone(this, List.of(lease));
      }
    }
  }

  void released(RemoteLease lease) {
    leases.remove(lease.id, lease);
  }

  private void closeLease(Message message) {
    RemoteLease lease = lease(message);
    lease.gate.reported(LeaseValues.usage(message, USAGE));
    leases.remove(lease.id);
    server.end(lease);
  }

  @Override
  public void closed(Link from, String reason) {
    closed = true;
    server.left(this);
    log.debug("a client is gone: {}: {}", process, reason);
    lines.end(() -> server.table().failPending(this), () -> server.gone(this, leases.values()));
  }
}
