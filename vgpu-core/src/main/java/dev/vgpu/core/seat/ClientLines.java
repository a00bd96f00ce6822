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
 * What one client has asked for and is not done: what is quick in its order, what may take long
 * beside it. Bounded: a client that sends faster than it is served is not read from until it is,
 * and has only so many requests that may take long. Filled on the loop's thread.
 */
final class ClientLines {
  private static final Logger log = LoggerFactory.getLogger(ClientLines.class);

  /** With so many requests that are not done, the next ones are left in the socket. */
  private static final int MOST_IN_ORDER = 16;

  private static final int MOST_LONG_AT_A_TIME = 4;
  private static final int MOST_LONG = 64;

  /** What a request takes here, beside its message. */
  private static final int REQUEST_BYTES = 2 << 10;

  static final String TOO_MANY = "more requests of one process wait than are kept";

  private final Desk.Line inOrder;
  private final Desk.Line preparations;
  private final Desk.Line changes;
  private final Desk.Line readings;

  /** Those in the line that nothing which concerns turns may pass. */
  private final AtomicInteger claims = new AtomicInteger();

  private volatile boolean heldBack;
  private volatile boolean ended;

  ClientLines(SeatDesks desks) {
    inOrder = desks.orders.new Line(1);
    preparations = desks.preparations.new Line(MOST_LONG_AT_A_TIME);
    changes = desks.changes.new Line(MOST_LONG_AT_A_TIME);
    readings = desks.readings.new Line(1);
  }

  /** A client names a lease that is not its own, or has ended. */
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

  /** Those that hold the next ones back. */
  private int waiting() {
    return inOrder.size() + readings.size();
  }

  private int longRequests() {
    return preparations.size() + changes.size();
  }

  boolean areFreeOfClaims() {
    return claims.get() == 0;
  }

  /** What concerns turns, and comes after a claim, is not known before that is done. */
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
      from.pause(); // before the last of them can be done
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

  /** What only reads, once what came before it is done; what comes after it does not wait. */
  void read(Link from, Message message, Runnable task) {
    Runnable last =
        () -> {
          try {
            task.run();
          } finally {
            goOn(from);
          }
        };
    inOrder(from, message, () -> add(readings, from, message, last));
  }

  void prepare(Link from, Message message, Runnable task) {
    later(preparations, from, message, task);
  }

  void change(Link from, Message message, Runnable task) {
    later(changes, from, message, task);
  }

  /**
   * The client is gone: what may take long and is not begun is given up, and with it what it takes
   * here. Then does something, when the rest is done.
   */
  void end(Runnable task) {
    ended = true;
    for (Desk.Line line : List.of(preparations, changes, readings)) {
      line.clear().forEach(each -> ((Task) each).giveUp());
    }
    inOrder.add(task);
  }

  /** What may take long, once what came before it is done; and not more than a few. */
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

  /** What a client asked for, which counts as held for it until it is done or given up. */
  private record Task(Link from, long bytes, Runnable work) implements Runnable {
    Task {
      from.hold(bytes);
    }

    @Override
    public void run() {
      try {
        work.run();
      } catch (MalformedMessageException e) {
        from.close("it sent what makes no sense: " + e.getMessage());
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
   * Sends a reply, or what went wrong. Who has given the seat up answers nothing: the connection
   * ends, and the client asks the next holder.
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
