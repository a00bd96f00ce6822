package dev.vgpu.cli.text;

import com.fasterxml.jackson.databind.node.JsonNodeFactory;
import com.fasterxml.jackson.databind.node.ObjectNode;
import dev.vgpu.cli.console.HarmlessText;
import dev.vgpu.watch.GpuEvent;
import java.time.ZoneId;
import java.time.format.DateTimeFormatter;
import java.util.Locale;
import java.util.Optional;

/** The events of a pool, for people and for programs. */
public final class EventTexts {
  private static final DateTimeFormatter TIME =
      DateTimeFormatter.ofPattern("HH:mm:ss", Locale.ROOT).withZone(ZoneId.systemDefault());

  private EventTexts() {}

  /** The kind of an event, as programs see it. */
  public static String kind(GpuEvent event) {
    return event.getClass().getSimpleName();
  }

  /** An event in one line: the time, the virtual GPU, and the reason. */
  public static String line(GpuEvent event) {
    return HarmlessText.oneLine(TIME.format(event.at()) + "  " + text(event));
  }

  private static String text(GpuEvent event) {
    String who = event.virtualGpu();
    if (event instanceof GpuEvent.Preempted preempted) {
      String often = preempted.times() == 1 ? "" : " (" + preempted.times() + " times)";
      return who + " preempted by " + preempted.by() + often;
    } else if (event instanceof GpuEvent.AllocationDenied denied) {
      return who + " " + denied.count() + " allocations denied: " + denied.reason();
    } else if (event instanceof GpuEvent.SharingChanged changed) {
      return "sharing is " + Words.of(changed.mode()) + ": " + changed.reason();
    } else if (event instanceof GpuEvent.Acquired acquired) {
      return who + " acquired, " + Words.of(acquired.request().preemptionClass());
    } else if (event instanceof GpuEvent.Closed closed) {
      return who + " closed after " + Words.time(closed.usage().gpuTime()) + " of GPU time";
    } else if (event instanceof GpuEvent.Suspended suspended) {
      return who + " suspended, " + Words.size(suspended.freed()) + ": " + suspended.reason();
    } else if (event instanceof GpuEvent.ReclaimAsked asked) {
      return who + " asked for " + Words.size(asked.wanted()) + ": " + asked.reason();
    }
    if (event instanceof GpuEvent.HealthChanged changed) {
      String whose = who.isEmpty() ? changed.gpu().value() : who + " on " + changed.gpu();
      return whose + " is " + DeviceTexts.word(changed.health()) + ": " + changed.reason();
    } else if (event instanceof GpuEvent.GpuFault fault) {
      return fault.gpu() + " reported a fault: " + fault.reason();
    }
    String what = words(kind(event));
    return (who.isEmpty() ? what : who + " " + what)
        + reason(event).map(why -> ": " + why).orElse("");
  }

  /** The words of a kind: {@code CancelFailed} becomes "cancel failed". */
  private static String words(String kind) {
    return kind.replaceAll("(?<=[a-z])([A-Z])", " $1").toLowerCase(Locale.ROOT);
  }

  /** The reason, if this kind of event has one. */
  static Optional<String> reason(GpuEvent event) {
    if (event instanceof GpuEvent.Refused refused) {
      return Optional.of(refused.reason());
    } else if (event instanceof GpuEvent.CancelFailed failed) {
      return Optional.of(failed.reason());
    } else if (event instanceof GpuEvent.AllocationDenied denied) {
      return Optional.of(denied.reason());
    } else if (event instanceof GpuEvent.SuspectReport suspect) {
      return Optional.of(suspect.reason());
    } else if (event instanceof GpuEvent.Disturbed disturbed) {
      return Optional.of(disturbed.reason());
    } else if (event instanceof GpuEvent.SharingChanged changed) {
      return Optional.of(changed.reason());
    } else if (event instanceof GpuEvent.MeteringFailed failed) {
      return Optional.of(failed.reason());
    }
    return reasonOfReclaim(event);
  }

  private static Optional<String> reasonOfReclaim(GpuEvent event) {
    if (event instanceof GpuEvent.ReclaimAsked asked) {
      return Optional.of(asked.reason());
    } else if (event instanceof GpuEvent.Suspended suspended) {
      return Optional.of(suspended.reason());
    } else if (event instanceof GpuEvent.Resumed resumed) {
      return Optional.of(resumed.reason());
    } else if (event instanceof GpuEvent.EndedByReclaim ended) {
      return Optional.of("pids " + ended.processes() + ": " + ended.reason());
    } else if (event instanceof GpuEvent.HeldBack held) {
      return Optional.of(held.reason());
    } else if (event instanceof GpuEvent.HealthChanged changed) {
      return Optional.of(changed.reason());
    } else if (event instanceof GpuEvent.GpuFault fault) {
      return Optional.of(fault.reason());
    }
    return Optional.empty();
  }

  /** {@return the event for programs} */
  public static ObjectNode json(GpuEvent event) {
    ObjectNode json = JsonNodeFactory.instance.objectNode();
    json.put("time", event.at().toString())
        .put("kind", kind(event))
        .put("virtual_gpu", event.virtualGpu())
        .put("text", text(event));
    reason(event).ifPresent(reason -> json.put("reason", reason));
    if (event instanceof GpuEvent.Preempted preempted) {
      json.put("by", preempted.by())
          .put("times", preempted.times())
          .put("cancelled_calls", preempted.cancelledCalls());
    } else if (event instanceof GpuEvent.AllocationDenied denied) {
      json.put("count", denied.count());
    } else if (event instanceof GpuEvent.SharingChanged changed) {
      json.put("gpu", changed.gpu().value()).put("mode", Words.of(changed.mode()));
    } else if (event instanceof GpuEvent.Suspended suspended) {
      json.put("freed_bytes", suspended.freed().bytes());
    } else if (event instanceof GpuEvent.ReclaimAsked asked) {
      json.put("wanted_bytes", asked.wanted().bytes());
    } else if (event instanceof GpuEvent.HealthChanged changed) {
      json.put("gpu", changed.gpu().value()).put("health", DeviceTexts.word(changed.health()));
    } else if (event instanceof GpuEvent.GpuFault fault) {
      json.put("gpu", fault.gpu().value());
    }
    return json;
  }
}
