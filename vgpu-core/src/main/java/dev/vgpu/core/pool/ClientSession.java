package dev.vgpu.core.pool;

import static dev.vgpu.core.pool.Protocol.LEASE;
import static dev.vgpu.core.pool.Protocol.NUMBER;
import static dev.vgpu.core.pool.Protocol.REQUEST;
import static dev.vgpu.core.pool.Protocol.TURN;
import static dev.vgpu.core.pool.Protocol.USAGE;

import dev.vgpu.ProtocolMismatchException;
import dev.vgpu.VirtualGpuRequest;
import dev.vgpu.core.seat.ChoiceValues;
import dev.vgpu.core.seat.EventValues;
import dev.vgpu.core.seat.LeaseValues;
import dev.vgpu.core.seat.Link;
import dev.vgpu.core.seat.LinkLoop;
import dev.vgpu.core.seat.MalformedMessageException;
import dev.vgpu.core.seat.Message;
import dev.vgpu.core.seat.ProcessIdentity;
import dev.vgpu.core.seat.RequestValues;
import dev.vgpu.core.seat.StateValues;
import dev.vgpu.core.seat.UsageValues;
import dev.vgpu.core.turn.RemoteGate;
import dev.vgpu.core.turn.UsageReading;
import java.nio.file.Path;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.concurrent.ConcurrentHashMap;
import java.util.function.Consumer;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * One client process, as the seat's holder serves it. Confined to the loop's thread, but for what
 * says otherwise.
 */
final class ClientSession implements Link.Handler, Asked.Claimant, RemoteGate.Orders {
  private static final Logger log = LoggerFactory.getLogger(ClientSession.class);
  private static final int MOST_PENDING = 1_000;
  private static final ProcessIdentity NOBODY = new ProcessIdentity(0, 0);

  private final SeatServer server;

  /** Also used by who grants a request that waited. */
  private final Map<String, RemoteLease> leases = new ConcurrentHashMap<>();

  private final Map<Long, PendingRequest> pending = new ConcurrentHashMap<>();
  private volatile @Nullable Link link;
  private volatile boolean closed;
  private volatile ProcessIdentity process = NOBODY;
  private @Nullable Runnable listening;

  ClientSession(SeatServer server) {
    this.server = server;
  }

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
  public ProcessIdentity process() {
    return process;
  }

  @Override
  public RemoteLease calls(String id, List<GpuSlot> on, VirtualGpuRequest request) {
    RemoteLease lease = server.remoteLease(id, on, request, process);
    lease.session = this;
    lease.gate.connected(this, 0, false, false, UsageReading.NONE);
    leases.put(id, lease);
    return lease;
  }

  // ---- orders to the process; with a seat held, on any thread

  private void tell(Message message) {
    Link to = link;
    if (to != null) {
      to.send(message);
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

  // ---- what comes

  @Override
  public void received(Link from, Message message) {
    link = from;
    if (!isGreeted()) {
      hello(from, message);
      return;
    }
    try {
      work(from, message);
    } catch (UnknownLeaseException e) {
      log.debug("{}", e.getMessage());
    }
  }

  private void work(Link from, Message message) {
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
      case Protocol.STARTED ->
          server
              .table()
              .started(
                  lease(message).booking(),
                  new ProcessIdentity(message.number("pid"), message.number("start")));
      case Protocol.RECLAIMABLE -> lease(message).hasReclaimHandler = true;
      case Protocol.RECLAIMED -> lease(message).reclaimed();
      case Protocol.ATTACHED -> {
        RemoteLease lease = lease(message);
        lease.gate.reported(LeaseValues.usage(message, USAGE));
        lease.booking().gate.countProcessesOnly(message.number("callsNs"));
      }
      case Protocol.LISTEN -> listen();
      case EventValues.TYPE -> {
        var event = EventValues.event(message);
        server.node().listeners().publish(at -> event);
      }
      case Protocol.CLAIMED -> server.claimed(process, leases.keySet());
      case Protocol.CANCEL -> cancel(message.number("of"));
      default -> request(from, message);
    }
  }

  private RemoteLease lease(Message message) {
    RemoteLease lease = leases.get(message.text(LEASE));
    if (lease == null) {
      // Crossed with its end, or meant for an earlier holder of the seat.
      throw new UnknownLeaseException(message.text(LEASE));
    }
    return lease;
  }

  private static final class UnknownLeaseException extends RuntimeException {
    private static final long serialVersionUID = 1L;

    UnknownLeaseException(String id) {
      super("no such virtual GPU of this process: id=" + id);
    }
  }

  private void hello(Link from, Message message) {
    if (!message.type().equals(Protocol.HELLO)) {
      throw new MalformedMessageException("it does not say who it is first");
    }
    Message reply = new Message(Protocol.REPLY).with(NUMBER, message.number(NUMBER));
    long version = message.number("version");
    if (version != Protocol.VERSION) {
      ProtocolMismatchException mismatch =
          new ProtocolMismatchException(
              "the seat's holder speaks another version: its version="
                  + Protocol.VERSION
                  + " ("
                  + server.node().self()
                  + "), this process's version="
                  + version
                  + "; stop the older one, or use another run directory");
      from.send(Protocol.failure(reply, mismatch));
      from.close("it speaks version " + version);
      return;
    }
    process = new ProcessIdentity(message.number("pid"), message.number("start"));
    from.mostFrameBytes(LinkLoop.MOST_FRAME_BYTES_OF_CLIENT);
    reply.with("pid", server.node().self().pid()).with("start", server.node().self().start());
    Protocol.settings(reply, server.node().settings());
    LeaseValues.putGpus(reply, server.node().gpus());
    from.send(reply);
    server.greeted(this);
  }

  /** Answers on this thread what is quick, on another what may take long. */
  private void request(Link from, Message message) {
    long number = message.number(NUMBER);
    switch (message.type()) {
      case Protocol.ENQUEUE -> answer(from, number, reply -> enqueue(number, message));
      case Protocol.ACQUIRE ->
          answer(
              from,
              number,
              reply -> {
                granted(reply, server.table().acquire(asked(message)));
                from.send(reply);
              });
      case Protocol.CLAIM ->
          answer(
              from,
              number,
              reply -> {
                claim(message);
                from.send(reply);
              });
      case Protocol.RESIZE ->
          answer(
              from,
              number,
              reply -> {
                server
                    .table()
                    .resize(
                        lease(message).booking(), RequestValues.request(message.under(REQUEST)));
                from.send(reply);
              });
      case Protocol.USED,
          Protocol.MAKE_ROOM,
          Protocol.SUSPEND,
          Protocol.RESUME,
          Protocol.LEASES,
          Protocol.METERED,
          Protocol.STATES,
          Protocol.EXPLAIN,
          Protocol.EVENTS,
          Protocol.BACKENDS,
          Protocol.CAPABILITIES,
          Protocol.ENVIRONMENT ->
          server
              .node()
              .workers()
              .execute(
                  () ->
                      answer(
                          from,
                          number,
                          reply -> {
                            read(message, reply);
                            from.send(reply);
                          }));
      default -> throw new MalformedMessageException("it asks for " + message.type());
    }
  }

  private static void answer(Link from, long number, Consumer<Message> work) {
    Message reply = new Message(Protocol.REPLY).with(NUMBER, number);
    try {
      work.accept(reply);
    } catch (MalformedMessageException e) {
      from.close("it sent what makes no sense: " + e.getMessage());
    } catch (RuntimeException e) {
      from.send(Protocol.failure(new Message(Protocol.REPLY).with(NUMBER, number), e));
    }
  }

  private void read(Message message, Message reply) {
    switch (message.type()) {
      case Protocol.LEASES -> LeaseValues.putLeases(reply, server.table().leases());
      case Protocol.STATES -> StateValues.put(reply, server.authority().states());
      case Protocol.EVENTS -> EventValues.put(reply, server.authority().recentEvents());
      case Protocol.METERED -> UsageValues.put(reply, message, server.authority()::usageSince);
      case Protocol.MAKE_ROOM -> {
        List<String> moved =
            server.authority().makeRoom(RequestValues.request(message.under(REQUEST)));
        for (int i = 0; i < moved.size(); i++) {
          reply.with(Protocol.MOVED + i, moved.get(i));
        }
      }
      case Protocol.SUSPEND ->
          server.authority().suspend(message.text(LEASE), message.number("timeoutNs"));
      case Protocol.RESUME ->
          server.authority().resume(message.text(LEASE), message.number("timeoutNs"));
      case Protocol.BACKENDS -> LeaseValues.putBackends(reply, server.authority().backends());
      case Protocol.CAPABILITIES ->
          reply.with(
              "can.", RequestValues.of(server.authority().capabilities(lease(message).booking())));
      case Protocol.EXPLAIN ->
          ChoiceValues.put(
              reply, server.authority().explain(RequestValues.request(message.under(REQUEST))));
      case Protocol.ENVIRONMENT -> {
        Optional<Path> program = message.find("program").map(Path::of);
        ProgramTerms terms = server.authority().terms(lease(message).booking(), program);
        reply.with("env.", terms.variables());
        for (int i = 0; i < terms.backends().size(); i++) {
          reply.with(Protocol.BACKEND + i, terms.backends().get(i));
        }
      }
      default -> {
        RemoteLease lease = lease(message);
        lease.gate.reported(LeaseValues.usage(message, USAGE));
        LeaseValues.put(reply, USAGE, lease.booking().usage());
      }
    }
  }

  private Asked asked(Message message) {
    return new Asked(RequestValues.request(message.under(REQUEST)), this);
  }

  private static void granted(Message reply, Booking booking) {
    reply.with(LEASE, booking.id).with("", RequestValues.of(booking.gpus()));
  }

  private void enqueue(long number, Message message) {
    if (pending.size() >= MOST_PENDING) {
      throw new IllegalStateException("more requests of one process wait than are kept");
    }
    PendingRequest waiting =
        new PendingRequest(asked(message), settled -> replySettled(number, settled));
    pending.put(number, waiting);
    try {
      server.table().enqueue(waiting);
    } catch (RuntimeException e) {
      pending.remove(number);
      throw e;
    }
  }

  private void replySettled(long number, PendingRequest settled) {
    pending.remove(number);
    Message reply = new Message(Protocol.REPLY).with(NUMBER, number);
    try {
      granted(reply, settled.booking());
    } catch (RuntimeException e) {
      Message ignored = Protocol.failure(reply, e);
    }
    tell(reply);
  }

  private void cancel(long number) {
    PendingRequest waiting = pending.remove(number);
    if (waiting != null) {
      Optional<String> refusal = server.table().giveUp(waiting);
      if (refusal.isPresent()) {
        server.table().publishRefused(waiting.asked.request(), refusal.get());
        tell(new Message(Protocol.REPLY).with(NUMBER, number).with("refusal", refusal.get()));
      }
    }
  }

  private void claim(Message message) {
    String id = message.text(LEASE);
    RemoteLease lease = server.claim(id, process, message);
    leases.put(id, lease);
    lease.session = this;
    lease.awaitedUntilNs = 0;
    boolean runs = message.flag("runs");
    lease.gate.connected(
        this, message.number(TURN), runs, message.flag("waits"), LeaseValues.usage(message, USAGE));
    if (message.flag("attached")) {
      lease.booking().gate.countProcessesOnly(message.number("callsNs"));
    }
    lease.booking().gate.adopt(null);
  }

  private void closeLease(Message message) {
    RemoteLease lease = lease(message);
    lease.gate.reported(LeaseValues.usage(message, USAGE));
    leases.remove(lease.id);
    server.end(lease);
  }

  private void listen() {
    if (listening == null) {
      listening = server.node().listeners().listen(event -> tell(EventValues.of(event)));
    }
  }

  @Override
  public void closed(Link from, String reason) {
    closed = true;
    if (listening != null) {
      listening.run();
    }
    log.debug("a client is gone: {}: {}", process, reason);
    server.table().failPending(this);
    server.gone(this, leases.values());
  }
}
