package dev.vgpu.core.pool;

import dev.vgpu.GpuCapacityException;
import dev.vgpu.ProtocolMismatchException;
import dev.vgpu.VgpuException;
import dev.vgpu.core.schedule.SchedulerSettings;
import dev.vgpu.core.seat.LeaseValues;
import dev.vgpu.core.seat.Message;
import java.util.Objects;

/**
 * What the processes of a node say to each other. A client begins with {@link #HELLO}; a request
 * has a number, and its {@link #REPLY} the same. The rest is told without a reply.
 */
final class Protocol {
  /** Another version is refused, and both are named. */
  static final int VERSION = 1;

  static final String NUMBER = "number";
  static final String LEASE = "lease";
  static final String TURN = "turn";
  static final String ERROR = "error";
  static final String USAGE = "usage.";
  static final String REQUEST = "request.";

  // Requests of a client.
  static final String HELLO = "hello";
  static final String CLAIM = "claim";
  static final String CLAIMED = "claimed";
  static final String ACQUIRE = "acquire";
  static final String ENQUEUE = "enqueue";
  static final String CANCEL = "cancel";
  static final String RESIZE = "resize";
  static final String LEASES = "leases";
  static final String BACKENDS = "backends";
  static final String CAPABILITIES = "capabilities";
  static final String USED = "used";
  static final String ENVIRONMENT = "environment";

  // What a client tells.
  static final String CLOSE = "close";
  static final String STARTED = "started";
  static final String ATTACHED = "attached";
  static final String LISTEN = "listen";
  static final String WANT = "want";
  static final String IDLE = "idle";
  static final String DRAINED = "drained";
  static final String REPORT = "report";

  // What the seat tells.
  static final String REPLY = "reply";
  static final String OPEN = "open";
  static final String SHUT = "shut";
  static final String PREEMPT = "preempt";
  static final String CONTENDED = "contended";

  private Protocol() {}

  static Message settings(Message message, SchedulerSettings settings) {
    return message
        .with("turnNs", settings.shortestTurnNs())
        .with("longestTurnNs", settings.longestTurnNs())
        .with("lingerNs", settings.lingerNs())
        .with("floor", settings.offlineFloor())
        .with("strict", settings.strict() ? 1 : 0)
        .with("lockoutNs", settings.lockoutNs());
  }

  static SchedulerSettings settings(Message message) {
    return new SchedulerSettings(
        message.number("turnNs"),
        message.number("longestTurnNs"),
        message.number("lingerNs"),
        Double.parseDouble(message.text("floor")),
        message.number("strict") != 0,
        message.number("lockoutNs"));
  }

  /** A reply that says what went wrong. */
  static Message failure(Message reply, RuntimeException failure) {
    String text = Objects.requireNonNullElse(failure.getMessage(), failure.toString());
    reply.with("message", text);
    if (failure instanceof GpuCapacityException capacity) {
      reply.with(ERROR, "capacity");
      LeaseValues.putLeases(reply, capacity.holders());
    } else if (failure instanceof ProtocolMismatchException) {
      reply.with(ERROR, "version");
    } else if (failure instanceof IllegalArgumentException) {
      reply.with(ERROR, "argument");
    } else if (failure instanceof IllegalStateException) {
      reply.with(ERROR, "state");
    } else {
      reply.with(ERROR, "world");
      if (!(failure instanceof VgpuException)) {
        reply.with("message", failure.toString());
      }
    }
    return reply;
  }

  /** Throws what a reply says went wrong, if something did. */
  static void check(Message reply) {
    String error = reply.find(ERROR).orElse("");
    if (error.isEmpty()) {
      return;
    }
    String text = reply.find("message").orElse("no reason given");
    throw switch (error) {
      case "capacity" -> new GpuCapacityException(text, LeaseValues.leases(reply));
      case "version" -> new ProtocolMismatchException(text);
      case "argument" -> new IllegalArgumentException(text);
      case "state" -> new IllegalStateException(text);
      default -> new VgpuException(text);
    };
  }
}
