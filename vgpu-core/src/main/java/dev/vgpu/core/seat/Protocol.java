package dev.vgpu.core.seat;

import dev.vgpu.GpuCapacityException;
import dev.vgpu.GpuSettings;
import dev.vgpu.GpuSuspendException;
import dev.vgpu.ProtocolMismatchException;
import dev.vgpu.VgpuException;
import dev.vgpu.core.book.PoolSettings;
import dev.vgpu.core.disk.ProcessIdentity;
import dev.vgpu.core.wire.LeaseValues;
import dev.vgpu.core.wire.Message;
import dev.vgpu.core.wire.SettingsValues;
import dev.vgpu.request.GpuId;
import java.util.HashMap;
import java.util.Map;
import java.util.Objects;

/**
 * The messages between the processes of a node. A client begins with {@link #HELLO}. A request
 * carries a number, and its {@link #REPLY} carries the same one. Other messages have no reply.
 */
final class Protocol {
  /** A peer with another version is refused with a message that names both. */
  static final int VERSION = 2;

  static final String NUMBER = "number";
  static final String LEASE = "lease";
  static final String TURN = "turn";
  static final String ERROR = "error";
  static final String USAGE = "usage.";
  static final String REQUEST = "request.";

  // Requests of a client, in addition to each Operation.
  static final String HELLO = "hello";
  static final String CLAIM = "claim";
  static final String CLAIMED = "claimed";
  static final String ACQUIRE = "acquire";
  static final String ENQUEUE = "enqueue";
  static final String CANCEL = "cancel";

  // Messages of a client without a reply.
  static final String CLOSE = "close";
  static final String STARTED = "started";
  static final String ATTACHED = "attached";
  static final String LISTEN = "listen";
  static final String WANT = "want";
  static final String IDLE = "idle";
  static final String DRAINED = "drained";
  static final String REPORT = "report";
  static final String RECLAIMABLE = "reclaimable";
  static final String RECLAIMED = "reclaimed";

  // Messages of the seat.
  static final String REPLY = "reply";
  static final String OPEN = "open";
  static final String SHUT = "shut";
  static final String PREEMPT = "preempt";
  static final String CONTENDED = "contended";
  static final String RECLAIM = "reclaim";

  private Protocol() {}

  /** Adds the settings of the GPUs. */
  static Message settings(Message message, PoolSettings settings) {
    message.with("settings.", SettingsValues.of(settings.forAll()));
    int at = 0;
    for (Map.Entry<GpuId, GpuSettings> one : settings.some().entrySet()) {
      String prefix = "settings." + at++ + ".";
      message.with(prefix + "gpu", one.getKey()).with(prefix, SettingsValues.of(one.getValue()));
    }
    return message;
  }

  static PoolSettings settings(Message message) {
    Map<GpuId, GpuSettings> some = new HashMap<>();
    for (int at = 0; message.find("settings." + at + ".gpu").isPresent(); at++) {
      Map<String, String> values = message.under("settings." + at + ".");
      some.put(new GpuId(message.text("settings." + at + ".gpu")), SettingsValues.settings(values));
    }
    return new PoolSettings(SettingsValues.settings(message.under("settings.")), some);
  }

  /** What the seat's holder tells a process that speaks another version. */
  static ProtocolMismatchException mismatch(long version, ProcessIdentity holder) {
    return new ProtocolMismatchException(
        "the seat's holder speaks another version: its version="
            + VERSION
            + " ("
            + holder
            + "), this process's version="
            + version
            + "; stop the older one, or use another run directory");
  }

  /** Adds a failure to a reply. */
  static Message failure(Message reply, RuntimeException failure) {
    String text = Objects.requireNonNullElse(failure.getMessage(), failure.toString());
    reply.with("message", text);
    if (failure instanceof GpuCapacityException capacity) {
      reply.with(ERROR, "capacity");
      LeaseValues.putLeases(reply, capacity.holders());
    } else if (failure instanceof GpuSuspendException) {
      reply.with(ERROR, "suspend");
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

  /** Throws the failure in a reply, if there is one. */
  static void check(Message reply) {
    String error = reply.find(ERROR).orElse("");
    if (error.isEmpty()) {
      return;
    }
    String text = reply.find("message").orElse("no reason given");
    throw switch (error) {
      case "capacity" -> new GpuCapacityException(text, LeaseValues.leases(reply));
      case "suspend" -> new GpuSuspendException(text);
      case "version" -> new ProtocolMismatchException(text);
      case "argument" -> new IllegalArgumentException(text);
      case "state" -> new IllegalStateException(text);
      default -> new VgpuException(text);
    };
  }
}
