package dev.vgpu.core.seat;

import static dev.vgpu.core.seat.Operation.Nothing.NOTHING;
import static dev.vgpu.core.seat.Protocol.LEASE;
import static dev.vgpu.core.seat.Protocol.REQUEST;
import static dev.vgpu.core.seat.Protocol.TURN;
import static dev.vgpu.core.seat.Protocol.USAGE;

import dev.vgpu.BackendChoice;
import dev.vgpu.BackendStatus;
import dev.vgpu.Capabilities;
import dev.vgpu.GpuCapacityException;
import dev.vgpu.GpuEvent;
import dev.vgpu.GpuLease;
import dev.vgpu.GpuState;
import dev.vgpu.GpuUsage;
import dev.vgpu.PhysicalGpu;
import dev.vgpu.UsageRecord;
import dev.vgpu.VirtualGpuRequest;
import dev.vgpu.core.book.PoolSettings;
import dev.vgpu.core.book.ResizeRules;
import dev.vgpu.core.discovery.ProgramTerms;
import dev.vgpu.core.disk.ProcessIdentity;
import dev.vgpu.core.disk.SeatLostException;
import dev.vgpu.core.node.Authority;
import dev.vgpu.core.node.Lease;
import dev.vgpu.core.node.LocalClaim;
import dev.vgpu.core.node.Node;
import dev.vgpu.core.node.NodeGpu;
import dev.vgpu.core.turn.RemoteTurns;
import dev.vgpu.core.turn.UsageReading;
import dev.vgpu.core.wire.EventValues;
import dev.vgpu.core.wire.LeaseValues;
import dev.vgpu.core.wire.Link;
import dev.vgpu.core.wire.LinkLoop;
import dev.vgpu.core.wire.Message;
import dev.vgpu.core.wire.RequestValues;
import dev.vgpu.core.wire.UsageValues;
import java.io.IOException;
import java.nio.file.Path;
import java.time.Instant;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import java.util.function.Consumer;
import java.util.function.Function;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/** The authority when another process holds the seat. Thread-safe. */
final class SeatClient implements Authority, RemoteTurns.Reports {
  private static final Logger log = LoggerFactory.getLogger(SeatClient.class);

  /** The longest wait for a reply that does not depend on backends or other tenants. */
  private static final long ANSWER_NS = 10_000_000_000L;

  private static final long UNDO_NS = 90_000_000_000L;

  private final Node node;
  private final SeatCalls calls;

  /** The identity that the holder has sent. */
  private final ProcessIdentity holder;

  private final PoolSettings settings;
  private final List<PhysicalGpu> gpus;

  private SeatClient(Node node, SeatCalls calls, Message welcome) {
    this.node = node;
    this.calls = calls;
    this.holder = new ProcessIdentity(welcome.number("pid"), welcome.number("start"));
    this.settings = Protocol.settings(welcome);
    this.gpus = LeaseValues.gpus(welcome);
    calls.heldBy(holder);
  }

  /**
   * Connects to the process that holds the seat.
   *
   * @param holder that process, if it is known
   * @param whenLost called on the loop's thread when that process is gone
   * @throws IOException if no process listens
   */
  static SeatClient connect(
      Node node,
      LinkLoop loop,
      Path socket,
      Optional<ProcessIdentity> holder,
      long timeoutNs,
      Consumer<String> whenLost)
      throws IOException {
    SeatCalls calls = new SeatCalls(node, holder, whenLost);
    Link link = loop.connect(socket, calls);
    calls.speakThrough(link);
    SeatClient made = null;
    try {
      Message hello =
          new Message(Protocol.HELLO)
              .with("version", Protocol.VERSION)
              .with("pid", node.self().pid())
              .with("start", node.self().start())
              .with("secret", node.secret().text());
      made = new SeatClient(node, calls, calls.askBusy(hello, timeoutNs, ANSWER_NS));
      return made;
    } finally {
      if (made == null) {
        link.close("the seat's holder did not welcome this process");
      }
    }
  }

  ProcessIdentity holder() {
    return holder;
  }

  PoolSettings settings() {
    return settings;
  }

  List<PhysicalGpu> gpus() {
    return gpus;
  }

  boolean isLost() {
    return calls.isLost();
  }

  void close() {
    calls.close();
  }

  private <Q, A> A ask(Operation<Q, A> operation, Q question) {
    return ask(operation, question, ANSWER_NS);
  }

  private <Q, A> A ask(Operation<Q, A> operation, Q question, long timeoutNs) {
    return operation.answer().get().apply(calls.ask(operation.ask(question), timeoutNs));
  }

  /** Asks something that may wait for the work of backends. */
  private <Q, A> A askLong(Operation<Q, A> operation, Q question) {
    return operation.answer().get().apply(answer(calls.begin(operation.ask(question), this)));
  }

  private Message answer(SeatCalls.Call call) {
    return call.answer(ANSWER_NS, this::states);
  }

  // ---- acquiring

  @Override
  public Lease acquire(LocalClaim claim) {
    SeatCalls.Call call = begin(Protocol.ACQUIRE, claim);
    return granted(claim, Operation.GRANTED.get().apply(answer(call)));
  }

  @Override
  public Optional<Lease> tryAcquire(LocalClaim claim, long timeoutNs) throws InterruptedException {
    SeatCalls.Call call = begin(Protocol.ENQUEUE, claim);
    InterruptedException interrupt = null;
    boolean answered = false;
    try {
      answered = call.await(timeoutNs);
    } catch (InterruptedException e) {
      interrupt = e;
    }
    if (!answered) {
      // The reply is the refusal, or the grant or failure that was sent at the same time.
      calls.tell(new Message(Protocol.CANCEL).with("of", call.number()));
    }
    Message reply = answer(call);
    if (reply.find("refusal").isPresent()) {
      if (interrupt != null) {
        throw interrupt;
      }
      return Optional.empty();
    }
    if (interrupt != null) {
      Thread.currentThread().interrupt();
    }
    return Optional.of(granted(claim, Operation.GRANTED.get().apply(reply)));
  }

  private SeatCalls.Call begin(String type, LocalClaim claim) {
    Message request = new Message(type).with(REQUEST, RequestValues.of(claim.request()));
    SeatCalls.Call call = calls.begin(request, claim.pool());
    if (claim.pool().isClosed()) {
      failPending(claim.pool()); // as it closed, it may have missed this one
    }
    return call;
  }

  private Lease granted(LocalClaim claim, Operation.Granted granted) {
    Lease lease =
        node.exclusively(
            () -> {
              if (isLost()) { // the next holder grants it to no process, and this one asks again
                throw new SeatLostException("the seat's holder is gone");
              }
              List<NodeGpu> gpus = granted.gpus().stream().map(node::gpu).toList();
              Lease made = claim.lease(granted.lease(), gpus);
              // Its turns are announced for the first GPU only, and hold on all of its GPUs.
              made.remote(node.turns(gpus.get(0)).new Tenant(made.id, made.gate));
              return made;
            });
    if (claim.pool().isClosed()) {
      lease.close(); // the pool was closed while the reply arrived
      throw new IllegalStateException("the pool is closed");
    }
    return lease;
  }

  @Override
  public void failPending(Object owner) {
    calls.fail(owner, new IllegalStateException("the pool was closed"));
  }

  // ---- changing and giving back

  @Override
  public void resize(Lease lease, VirtualGpuRequest asked) {
    lease.resizeInTurn(() -> resizeInTurn(lease, asked));
  }

  private void resizeInTurn(Lease lease, VirtualGpuRequest asked) {
    VirtualGpuRequest before = lease.request();
    ResizeRules.checkSameElsewhere(before, asked, lease.id, lease.gpuIds());
    if (lease.isClosed()) {
      throw new IllegalStateException("the virtual GPU is closed: id=" + lease.id);
    }
    // Shrink here before the seat does; grow at the seat before growing here.
    boolean shrinks = asked.memory().compareTo(before.memory()) < 0;
    if (shrinks) {
      resizeHere(lease, asked);
    }
    try {
      resizeThere(lease, asked);
    } catch (RuntimeException e) {
      if (shrinks) {
        resizeHere(lease, before);
      }
      throw e;
    }
    if (!shrinks) {
      resizeHere(lease, asked);
    }
    lease.request(asked);
  }

  private void resizeThere(Lease lease, VirtualGpuRequest asked) {
    Message message = Operation.RESIZE.ask(new Operation.Resize(lease.id, asked));
    SeatCalls.Call call = calls.begin(message, this);
    try {
      Object ignored = answer(call);
      lease.sizeUnclear(false);
    } catch (RuntimeException e) {
      if (!call.isRefused()) {
        lease.sizeUnclear(true);
        calls.close(); // settled when all leases are claimed again
      }
      throw e;
    }
  }

  /** Agrees with the seat on a size: this process's, or the seat's if others have the rest. */
  private void settle(Lease lease) {
    try {
      lease.resizeInTurn(() -> settleSize(lease));
    } catch (RuntimeException e) {
      log.warn("it is not clear how large a virtual GPU is: id={}", lease.id, e);
    }
  }

  private void settleSize(Lease lease) {
    try {
      resizeThere(lease, lease.request());
    } catch (GpuCapacityException e) {
      leases().stream()
          .filter(booked -> booked.id().equals(lease.id))
          .forEach(booked -> takeOver(lease, booked.request()));
    }
  }

  private static void takeOver(Lease lease, VirtualGpuRequest booked) {
    resizeHere(lease, booked);
    lease.request(booked);
    lease.sizeUnclear(false);
  }

  private static void resizeHere(Lease lease, VirtualGpuRequest asked) {
    String obstacle = lease.gate.tryResize(asked);
    if (obstacle != null) {
      throw ResizeRules.cannotResize(lease.id, asked, obstacle, lease.snapshot());
    }
  }

  @Override
  public List<String> makeRoom(VirtualGpuRequest request) {
    return ask(Operation.MAKE_ROOM, request, UNDO_NS);
  }

  @Override
  public void suspend(String id, long timeoutNs) {
    change(Operation.SUSPEND, id, timeoutNs);
  }

  @Override
  public void resume(String id, long timeoutNs) {
    change(Operation.RESUME, id, timeoutNs);
  }

  /** The seat undoes a failed change before it replies, which may take as long again. */
  private void change(
      Operation<Operation.Timed, Operation.Nothing> what, String id, long timeoutNs) {
    Object ignored = ask(what, new Operation.Timed(id, timeoutNs), 2 * timeoutNs + UNDO_NS);
  }

  @Override
  public void ended(Lease lease) {
    if (isLost()) {
      throw new SeatLostException("the seat's holder is gone");
    }
    Message message = new Message(Protocol.CLOSE).with(LEASE, lease.id);
    LeaseValues.put(message, USAGE, lease.gate.usage());
    calls.tell(message);
    lease.released();
  }

  // ---- reading

  @Override
  public List<GpuLease> leases() {
    return Operation.Leases.all(last -> ask(Operation.LEASES, last));
  }

  @Override
  public List<UsageRecord> usageSince(Instant since) {
    List<UsageRecord> records = new ArrayList<>();
    String next = "";
    for (; ; ) {
      UsageValues.Part part =
          ask(Operation.METERED, new UsageValues.Question(since, records.size(), next));
      records.addAll(part.records());
      next = part.next();
      if (part.records().isEmpty() || records.size() >= part.total()) {
        return List.copyOf(records);
      }
    }
  }

  @Override
  public List<GpuState> states() {
    return ask(Operation.STATES, NOTHING);
  }

  @Override
  public List<BackendChoice> explain(VirtualGpuRequest request) {
    return ask(Operation.EXPLAIN, request);
  }

  @Override
  public List<GpuEvent> recentEvents() {
    return ask(Operation.EVENTS, NOTHING);
  }

  @Override
  public List<BackendStatus> backends() {
    return ask(Operation.BACKENDS, NOTHING);
  }

  @Override
  public Capabilities capabilities(Lease lease) {
    return ask(Operation.CAPABILITIES, lease.id);
  }

  @Override
  public GpuUsage usage(Lease lease) {
    UsageReading here = lease.gate.usage();
    return !lease.isEnforced() || lease.isClosed()
        ? here
        : ask(Operation.USED, new Operation.Used(lease.id, here));
  }

  @Override
  public ProgramTerms terms(Lease lease, Optional<Path> program) {
    return askLong(Operation.TERMS, new Operation.Program(lease.id, program));
  }

  @Override
  public void started(Lease lease, ProcessIdentity program) {
    calls.tell(
        new Message(Protocol.STARTED)
            .with(LEASE, lease.id)
            .with("pid", program.pid())
            .with("start", program.start()));
  }

  @Override
  public void reclaimable(Lease lease) {
    calls.tell(new Message(Protocol.RECLAIMABLE).with(LEASE, lease.id));
  }

  @Override
  public void attached(Lease lease) {
    Message message =
        new Message(Protocol.ATTACHED)
            .with(LEASE, lease.id)
            .with("callsNs", lease.attachedCallsNs());
    LeaseValues.put(message, USAGE, lease.gate.usage());
    calls.tell(message);
  }

  @Override
  public void publish(Function<Instant, GpuEvent> event) {
    if (isLost()) {
      node.listeners().publish(event);
    } else {
      calls.tell(EventValues.of(event.apply(node.clock().now())));
    }
  }

  @Override
  public void listen() {
    calls.tell(new Message(Protocol.LISTEN));
  }

  /** Reports the usage of a lease so far. */
  void report(Lease lease, UsageReading usage) {
    Message message = new Message(Protocol.REPORT).with(LEASE, lease.id);
    LeaseValues.put(message, USAGE, usage);
    calls.tell(message);
  }

  // ---- turns, with a GPU's seat held

  @Override
  public void want(String lease) {
    calls.tell(new Message(Protocol.WANT).with(LEASE, lease));
  }

  @Override
  public void idle(String lease) {
    calls.tell(new Message(Protocol.IDLE).with(LEASE, lease));
  }

  @Override
  public void drained(String lease, long turn, boolean waits, UsageReading usage) {
    Message message =
        new Message(Protocol.DRAINED).with(LEASE, lease).with(TURN, turn).with("waits", waits);
    LeaseValues.put(message, USAGE, usage);
    calls.tell(message);
  }

  @Override
  public boolean isStopped() {
    return holder.state() == ProcessIdentity.State.STOPPED;
  }

  /**
   * Claims a lease at a new holder of the seat. Returns at once.
   *
   * @return the pending call, which fails if the lease is lost; null if the lease has no connection
   *     to a deciding process
   */
  SeatCalls.@Nullable Call claim(Lease lease) {
    RemoteTurns.Tenant tenant = lease.remote();
    if (tenant == null) {
      return null;
    }
    SeatCalls.Call[] call = new SeatCalls.Call[1];
    tenant.claim(
        standing -> {
          Message message =
              new Message(Protocol.CLAIM)
                  .with(LEASE, lease.id)
                  .with("", RequestValues.of(lease.gpuIds()))
                  .with(TURN, standing.turn())
                  .with("runs", standing.runs())
                  .with("waits", standing.waits())
                  .with("attached", lease.isAttached())
                  .with("callsNs", lease.attachedCallsNs())
                  .with(REQUEST, RequestValues.of(lease.request()));
          LeaseValues.put(message, USAGE, standing.usage());
          call[0] = calls.begin(message, this);
          if (lease.canReclaim()) {
            reclaimable(lease);
          }
        });
    return call[0];
  }

  /** Says that all leases have been claimed. */
  void claimed() {
    calls.tell(new Message(Protocol.CLAIMED));
    node.leases().stream()
        .filter(lease -> lease.isSizeUnclear() && !lease.isClosed())
        .forEach(lease -> node.workers().execute(() -> settle(lease)));
  }
}
