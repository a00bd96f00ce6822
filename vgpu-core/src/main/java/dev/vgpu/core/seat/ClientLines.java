package dev.vgpu.core.seat;

import static dev.vgpu.core.seat.Protocol.NUMBER;

import dev.vgpu.core.disk.SeatLostException;
import dev.vgpu.core.wire.Link;
import dev.vgpu.core.wire.MalformedMessageException;
import dev.vgpu.core.wire.Message;
import java.util.List;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.function.Consumer;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * The unfinished requests of one client. Quick requests run in order; long ones run concurrently.
 * The queues are bounded: if a client sends faster than it is served, its socket is not read until
 * the queue has shrunk. The number of its long requests is limited too. Filled on the loop's
 * thread.
 */
final class ClientLines {
  private static final Logger log = LoggerFactory.getLogger(ClientLines.class);

  /** With this many unfinished requests, further ones stay in the socket. */
  private static final int MOST_IN_ORDER = 16;

  private static final int MOST_LONG_AT_A_TIME = 4;
  private static final int MOST_LONG = 64;

  /** The estimated memory of a request, in addition to its message. */
  private static final int REQUEST_BYTES = 2 << 10;

  static final String TOO_MANY = "too many pending requests from one process";

  private final Desk.Line inOrder;
  private final Desk.Line preparations;
  private final Desk.Line changes;
  private final Desk.Line readings;
  private final Desk.Line records;

  /** Queued claims and messages about turns; while there are any, later ones must queue as well. */
  private final AtomicInteger claims = new AtomicInteger();

  private volatile boolean heldBack;
  private volatile boolean ended;

  ClientLines(SeatDesks desks) {
    inOrder = desks.orders.new Line(1);
    preparations = desks.preparations.new Line(MOST_LONG_AT_A_TIME);
    changes = desks.changes.new Line(MOST_LONG_AT_A_TIME);
    readings = desks.readings.new Line(1);
    records = desks.records.new Line(1);
  }

  /** A client names a lease that is not its own, or that has ended. */
  static final class UnknownLeaseException extends RuntimeException {
    private static final long serialVersionUID = 1L;

    UnknownLeaseException(String id) {
      super("no such virtual GPU of this process: id=" + id, null, false, false);
    }
  }

  static long bytes(Message message) {
    return REQUEST_BYTES + message.heapBytes();
  }

  boolean areEmpty() {
    return waiting() + longRequests() == 0;
  }

  /** The requests that count towards {@link #MOST_IN_ORDER}. */
  private int waiting() {
    return inOrder.size() + readings.size() + records.size();
  }

  private int longRequests() {
    return preparations.size() + changes.size();
  }

  boolean areFreeOfClaims() {
    return claims.get() == 0;
  }

  /** Queues a claim, or a message about turns that must wait until an earlier claim is done. */
  void claimOrFollow(Link from, Message message, Runnable task) {
    claims.incrementAndGet();
    inOrder(
        from,
        message,
        () -> {
          try {
            task.run();
          } finally {
            claims.decrementAndGet();
          }
        });
  }

  void inOrder(Link from, Message message, Runnable task) {
    if (waiting() + 1 >= MOST_IN_ORDER) {
      from.pause(); // before the last of them can finish
      heldBack = true;
    }
    add(
        inOrder,
        from,
        message,
        () -> {
          try {
            task.run();
          } finally {
            goOn(from);
          }
        });
  }

  private void goOn(Link from) {
    if (heldBack && waiting() <= MOST_IN_ORDER / 2) {
      heldBack = false;
      from.resume();
    }
  }

  /** Queues a read-only request behind the earlier requests. Later requests do not wait for it. */
  void read(Link from, Message message, Runnable task) {
    read(readings, from, message, task);
  }

  /** As {@link #read}, for a request that other read-only ones should not wait for. */
  void readFiles(Link from, Message message, Runnable task) {
    read(records, from, message, task);
  }

  private void read(Desk.Line line, Link from, Message message, Runnable task) {
    Runnable last =
        () -> {
          try {
            task.run();
          } finally {
            goOn(from);
          }
        };
    inOrder(from, message, () -> add(line, from, message, last));
  }

  void prepare(Link from, Message message, Runnable task) {
    later(preparations, from, message, task);
  }

  void change(Link from, Message message, Runnable task) {
    later(changes, from, message, task);
  }

  /**
   * The client is gone: drops its long and read-only requests that have not started, and releases
   * the memory that they hold. Runs {@code last} when the rest is done, each if another fails too.
   */
  void end(Runnable... last) {
    ended = true;
    for (Desk.Line line : List.of(preparations, changes, readings, records)) {
      line.clear().forEach(each -> ((Task) each).giveUp());
    }
    for (Runnable each : last) {
      inOrder.add(each);
    }
  }

  /** Queues a long request behind the earlier requests; refuses it if there are too many. */
  private void later(Desk.Line line, Link from, Message message, Runnable task) {
    inOrder(
        from,
        message,
        () -> {
          if (ended) {
            log.debug("not begun, for its client is gone: {}", message.type());
          } else if (longRequests() < MOST_LONG) {
            add(line, from, message, task);
          } else {
            answer(
                from,
                message,
                reply -> {
                  throw new IllegalStateException(TOO_MANY);
                });
          }
        });
  }

  private static void add(Desk.Line line, Link from, Message message, Runnable work) {
    line.add(new Task(from, bytes(message), work));
  }

  /** A request, whose memory counts as held for its client until it is done or dropped. */
  private record Task(Link from, long bytes, Runnable work) implements Runnable {
    Task {
      from.hold(bytes);
    }

    @Override
    public void run() {
      try {
        work.run();
      } catch (MalformedMessageException e) {
        from.close("malformed message: " + e.getMessage());
      } catch (UnknownLeaseException e) {
        log.debug("{}", e.getMessage());
      } catch (RuntimeException | Error e) {
        from.close("it could not be served");
        throw e;
      } finally {
        giveUp();
      }
    }

    void giveUp() {
      from.hold(-bytes);
    }
  }

  /**
   * Sends a reply or a failure. If this process has given the seat up, sends nothing: the
   * connection ends, and the client asks the next holder.
   */
  static void answer(Link from, Message message, Consumer<Message> work) {
    long number = message.number(NUMBER);
    try {
      work.accept(new Message(Protocol.REPLY).with(NUMBER, number));
    } catch (MalformedMessageException e) {
      throw e;
    } catch (SeatLostException e) {
      log.debug("not answered: {}: {}", message.type(), e.getMessage());
    } catch (RuntimeException e) {
      from.send(Protocol.failure(new Message(Protocol.REPLY).with(NUMBER, number), e));
    }
  }
}
