package dev.vgpu.core.seat;

import static dev.vgpu.core.seat.Protocol.LEASE;
import static dev.vgpu.core.seat.Protocol.NUMBER;
import static dev.vgpu.core.seat.Protocol.TURN;
import static java.util.Objects.requireNonNull;

import dev.vgpu.VgpuException;
import dev.vgpu.core.disk.ProcessIdentity;
import dev.vgpu.core.disk.SeatLostException;
import dev.vgpu.core.node.Lease;
import dev.vgpu.core.node.Node;
import dev.vgpu.core.turn.RemoteTurns;
import dev.vgpu.core.turn.UsageReading;
import dev.vgpu.core.wire.EventValues;
import dev.vgpu.core.wire.LeaseValues;
import dev.vgpu.core.wire.Link;
import dev.vgpu.core.wire.Message;
import dev.vgpu.watch.GpuEvent;
import java.util.Map;
import java.util.Optional;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicLong;
import java.util.concurrent.atomic.AtomicReference;
import java.util.function.Consumer;
import org.jspecify.annotations.Nullable;

/**
 * A client's connection to the process that holds the seat: requests, their replies, and the orders
 * of that process. Thread-safe.
 */
final class SeatCalls implements Link.Handler {
  /** If a wait takes longer than it should by this, the process was stopped meanwhile. */
  private static final long LOOK_NS = 500_000_000L;

  private final Node node;
  private final Consumer<String> whenLost;
  private final Map<Long, Call> waiting = new ConcurrentHashMap<>();
  private final AtomicLong numbers = new AtomicLong();
  private volatile @Nullable Link link;
  private volatile Optional<ProcessIdentity> holder;
  private volatile boolean lost;

  /** Creates an instance; {@code holder} is the process that holds the seat, if it is known. */
  SeatCalls(Node node, Optional<ProcessIdentity> holder, Consumer<String> whenLost) {
    this.node = node;
    this.holder = holder;
    this.whenLost = whenLost;
  }

  void speakThrough(Link to) {
    link = to;
  }

  void heldBy(ProcessIdentity process) {
    holder = Optional.of(process);
  }

  boolean isLost() {
    return lost;
  }

  private VgpuException unanswered(long timeoutNs) {
    return new VgpuException(
        "the seat's holder has not answered within "
            + timeoutNs / 1_000_000
            + " ms: "
            + holder.map(ProcessIdentity::described).orElse("it may be stopped"));
  }

  void close() {
    Link to = link;
    if (to != null) {
      to.close("this process needs the seat no more");
    }
  }

  /** How a request ended; one of the two is null. */
  private record Outcome(@Nullable Message reply, @Nullable RuntimeException failure) {}

  /** A request that was sent. */
  final class Call {
    private final long number;
    private final Object owner;
    private final CountDownLatch answered = new CountDownLatch(1);
    private final AtomicReference<@Nullable Outcome> outcome = new AtomicReference<>();

    Call(long number, Object owner) {
      this.number = number;
      this.owner = owner;
    }

    long number() {
      return number;
    }

    /** Ends the request; returns false if it has ended already, and then changes nothing. */
    boolean settle(@Nullable Message with, @Nullable RuntimeException because) {
      waiting.remove(number);
      boolean settles = outcome.compareAndSet(null, new Outcome(with, because));
      answered.countDown();
      return settles;
    }

    /** Whether a failure was in the holder's reply, and not that there was none. */
    boolean isRefused() {
      Outcome had = outcome.get();
      return had != null && had.reply != null;
    }

    /** Waits for the reply; returns false if it does not arrive in time. */
    boolean await(long timeoutNs) throws InterruptedException {
      return answered.await(timeoutNs, TimeUnit.NANOSECONDS);
    }

    /**
     * The reply, which may take as long as it likes while the holder is alive: each time it has not
     * arrived in time, {@code question} asks something that is answered at once. If that throws,
     * the request is cancelled.
     */
    Message answer(long timeoutNs, Runnable question) {
      while (!isAnswered(timeoutNs)) {
        try {
          question.run();
        } catch (RuntimeException e) {
          cancel(e);
        }
      }
      return answer(timeoutNs);
    }

    private void cancel(RuntimeException because) {
      // First: the reply to this message says something else.
      boolean ignored = settle(null, because);
      tell(new Message(Protocol.CANCEL).with("of", number));
    }

    /**
     * Waits for the reply. Time in which this process is stopped does not count: the reply may have
     * come, and nobody has read it.
     */
    private boolean isAnswered(long timeoutNs) {
      boolean interrupted = false;
      long leftNs = timeoutNs;
      long lastNs = node.clock().nanoTime();
      try {
        while (answered.getCount() > 0 && leftNs > 0) {
          long lookNs = Math.min(leftNs, LOOK_NS);
          try {
            boolean ignored = await(lookNs);
          } catch (InterruptedException e) {
            interrupted = true;
          }
          long nowNs = node.clock().nanoTime();
          boolean ran = nowNs - lastNs < lookNs + LOOK_NS;
          leftNs = ran ? leftNs - (nowNs - lastNs) : Math.max(leftNs, LOOK_NS);
          lastNs = nowNs;
        }
        return answered.getCount() == 0;
      } finally {
        if (interrupted) {
          Thread.currentThread().interrupt();
        }
      }
    }

    /**
     * The reply. Throws the failure that it contains, or a {@link VgpuException} after the timeout.
     */
    Message answer(long timeoutNs) {
      if (!isAnswered(timeoutNs)) {
        boolean ignored = settle(null, unanswered(timeoutNs));
      }
      Outcome had = requireNonNull(outcome.get());
      if (had.failure != null) {
        throw had.failure;
      }
      Message with = requireNonNull(had.reply);
      Protocol.check(with);
      return with;
    }
  }

  /** Sends a request on behalf of {@code owner}. */
  Call begin(Message message, Object owner) {
    Call call = new Call(numbers.incrementAndGet(), owner);
    waiting.put(call.number, call);
    tell(message.with(NUMBER, call.number));
    if (lost) {
      boolean ignored = call.settle(null, new SeatLostException("the seat's holder is gone"));
    }
    return call;
  }

  Message ask(Message message, long timeoutNs) {
    return begin(message, this).answer(timeoutNs);
  }

  /**
   * Asks for what a holder answers at once unless the machine is busy. A holder that runs is waited
   * for until {@code mostNs}, one that is stopped or not known for {@code timeoutNs}.
   */
  Message askBusy(Message message, long timeoutNs, long mostNs) {
    long startNs = node.clock().nanoTime();
    return begin(message, this)
        .answer(
            timeoutNs,
            () -> {
              long waitedNs = node.clock().nanoTime() - startNs;
              boolean runs =
                  holder.filter(of -> of.state() == ProcessIdentity.State.ALIVE).isPresent();
              if (!runs || waitedNs >= mostNs) {
                throw unanswered(waitedNs);
              }
            });
  }

  /** Sends a message that has no reply. */
  void tell(Message message) {
    Link to = link;
    if (to != null) {
      to.send(message);
    }
  }

  /** Fails all requests that wait on behalf of an owner. */
  void fail(Object owner, RuntimeException because) {
    for (Call call : waiting.values()) {
      if (call.owner == owner) {
        call.cancel(because);
      }
    }
  }

  @Override
  public void received(Link from, Message message) {
    switch (message.type()) {
      case Protocol.REPLY -> {
        Call call = waiting.get(message.number(NUMBER));
        if (call == null || !call.settle(message, null)) {
          message.find(LEASE).ifPresent(this::giveBack);
        }
      }
      case EventValues.TYPE -> {
        GpuEvent event = EventValues.event(message);
        node.listeners().publish(at -> event);
      }
      case Protocol.RECLAIM -> reclaim(message);
      case Protocol.OPEN, Protocol.SHUT, Protocol.PREEMPT, Protocol.CONTENDED -> order(message);
      default -> {
        // A later minor version may send more types; they can be ignored.
      }
    }
  }

  private void reclaim(Message message) {
    String id = message.text(LEASE);
    Lease lease = node.lease(id);
    Message answer = new Message(Protocol.RECLAIMED).with(LEASE, id);
    if (lease == null) {
      tell(answer);
    } else {
      lease.reclaim(Math.max(0, message.number("bytes")), () -> tell(answer));
    }
  }

  /** Closes a lease whose requester has stopped waiting. */
  private void giveBack(String lease) {
    Message message = new Message(Protocol.CLOSE).with(LEASE, lease);
    LeaseValues.put(message, Protocol.USAGE, UsageReading.NONE);
    tell(message);
  }

  private void order(Message message) {
    RemoteTurns.Tenant tenant = node.tenant(message.text(LEASE));
    if (tenant == null) {
      return; // closed in the meantime
    }
    switch (message.type()) {
      case Protocol.OPEN -> tenant.open(message.number(TURN), message.flag(Protocol.CONTENDED));
      case Protocol.SHUT -> tenant.shut(message.number(TURN));
      case Protocol.PREEMPT -> tenant.preempt(message.number(TURN));
      default -> tenant.contended(message.flag(Protocol.CONTENDED));
    }
  }

  @Override
  public void closed(Link from, String reason) {
    lost = true;
    for (Call call : waiting.values()) {
      boolean ignored =
          call.settle(null, new SeatLostException("the seat's holder is gone: " + reason));
    }
    whenLost.accept(reason);
  }
}
