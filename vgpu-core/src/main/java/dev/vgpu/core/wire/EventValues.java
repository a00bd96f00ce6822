package dev.vgpu.core.wire;

import dev.vgpu.GpuEvent;
import dev.vgpu.GpuId;
import dev.vgpu.MemorySize;
import java.time.DateTimeException;
import java.time.Instant;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.stream.Collectors;

/** Encodes and decodes events. */
public final class EventValues {
  /** The type of event messages. */
  public static final String TYPE = "event";

  private static final String COUNT = "event.count";
  private static final int MOST_EVENTS = 1_000;

  private EventValues() {}

  /**
   * {@return an event as a message}
   *
   * @param event the event
   */
  public static Message of(GpuEvent event) {
    Message message =
        new Message(EventValues.TYPE)
            .with("kind", event.getClass().getSimpleName())
            .with("at", event.at())
            .with("gpu", event.virtualGpu());
    if (event instanceof GpuEvent.Acquired acquired) {
      message.with("on", acquired.gpu()).with("request.", RequestValues.of(acquired.request()));
    } else if (event instanceof GpuEvent.Refused refused) {
      message
          .with("request.", RequestValues.of(refused.request()))
          .with("reason", refused.reason());
    } else if (event instanceof GpuEvent.Resized resized) {
      message
          .with("before.", RequestValues.of(resized.before()))
          .with("after.", RequestValues.of(resized.after()));
    } else if (event instanceof GpuEvent.Preempted preempted) {
      message
          .with("by", preempted.by())
          .with("cancelled", preempted.cancelledCalls())
          .with("times", preempted.times());
    } else if (event instanceof GpuEvent.CancelFailed failed) {
      message.with("reason", failed.reason());
    } else if (event instanceof GpuEvent.AllocationDenied denied) {
      message.with("count", denied.count()).with("reason", denied.reason());
    } else if (event instanceof GpuEvent.SuspectReport suspect) {
      message.with("reason", suspect.reason());
    } else if (event instanceof GpuEvent.Disturbed disturbed) {
      message.with("reason", disturbed.reason());
    } else if (event instanceof GpuEvent.SharingChanged sharing) {
      message
          .with("on", sharing.gpu())
          .with("mode", StateValues.of(sharing.mode()))
          .with("reason", sharing.reason());
    } else if (event instanceof GpuEvent.MeteringFailed failed) {
      message.with("reason", failed.reason());
    } else if (event instanceof GpuEvent.Closed closed) {
      LeaseValues.put(message, "usage.", closed.usage());
    } else {
      putReclaim(message, event);
    }
    return message;
  }

  private static void putReclaim(Message message, GpuEvent event) {
    if (event instanceof GpuEvent.ReclaimAsked asked) {
      message.with("bytes", asked.wanted().bytes()).with("reason", asked.reason());
    } else if (event instanceof GpuEvent.Suspended suspended) {
      message.with("bytes", suspended.freed().bytes()).with("reason", suspended.reason());
    } else if (event instanceof GpuEvent.Resumed resumed) {
      message.with("reason", resumed.reason());
    } else if (event instanceof GpuEvent.EndedByReclaim ended) {
      String pids =
          ended.processes().stream().map(String::valueOf).collect(Collectors.joining(" "));
      message.with("processes", pids).with("reason", ended.reason());
    } else if (event instanceof GpuEvent.HeldBack held) {
      message.with("reason", held.reason());
    } else if (event instanceof GpuEvent.HealthChanged changed) {
      message
          .with("on", changed.gpu())
          .with("health", StateValues.of(changed.health()))
          .with("reason", changed.reason());
    } else if (event instanceof GpuEvent.GpuFault fault) {
      message.with("on", fault.gpu()).with("reason", fault.reason());
    }
  }

  /**
   * {@return the event in a message}
   *
   * @param message a message created by {@link #of}
   */
  public static GpuEvent event(Message message) {
    Instant at = instant(message.text("at"));
    String gpu = message.text("gpu");
    return switch (message.text("kind")) {
      case "Acquired" ->
          new GpuEvent.Acquired(
              at,
              gpu,
              new GpuId(message.text("on")),
              RequestValues.request(message.under("request.")));
      case "Refused" ->
          new GpuEvent.Refused(
              at, gpu, RequestValues.request(message.under("request.")), message.text("reason"));
      case "Resized" ->
          new GpuEvent.Resized(
              at,
              gpu,
              RequestValues.request(message.under("before.")),
              RequestValues.request(message.under("after.")));
      case "Preempted" ->
          new GpuEvent.Preempted(
              at,
              gpu,
              message.text("by"),
              Math.toIntExact(message.number("cancelled")),
              message.number("times"));
      case "CancelFailed" -> new GpuEvent.CancelFailed(at, gpu, message.text("reason"));
      case "AllocationDenied" ->
          new GpuEvent.AllocationDenied(at, gpu, message.number("count"), message.text("reason"));
      case "SuspectReport" -> new GpuEvent.SuspectReport(at, gpu, message.text("reason"));
      case "Disturbed" -> new GpuEvent.Disturbed(at, gpu, message.text("reason"));
      case "SharingChanged" ->
          new GpuEvent.SharingChanged(
              at,
              gpu,
              new GpuId(message.text("on")),
              StateValues.mode(message.text("mode")),
              message.text("reason"));
      case "MeteringFailed" -> new GpuEvent.MeteringFailed(at, gpu, message.text("reason"));
      case "Leaked" -> new GpuEvent.Leaked(at, gpu);
      case "Closed" -> new GpuEvent.Closed(at, gpu, LeaseValues.usage(message, "usage."));
      default -> reclaim(message, at, gpu);
    };
  }

  private static GpuEvent reclaim(Message message, Instant at, String gpu) {
    return switch (message.text("kind")) {
      case "ReclaimAsked" ->
          new GpuEvent.ReclaimAsked(at, gpu, bytes(message), message.text("reason"));
      case "Suspended" -> new GpuEvent.Suspended(at, gpu, bytes(message), message.text("reason"));
      case "Resumed" -> new GpuEvent.Resumed(at, gpu, message.text("reason"));
      case "EndedByReclaim" ->
          new GpuEvent.EndedByReclaim(
              at, gpu, LeaseValues.pids(message.text("processes")), message.text("reason"));
      case "HeldBack" -> new GpuEvent.HeldBack(at, gpu, message.text("reason"));
      case "HealthChanged" ->
          new GpuEvent.HealthChanged(
              at,
              gpu,
              new GpuId(message.text("on")),
              StateValues.health(message.text("health")),
              message.text("reason"));
      case "GpuFault" ->
          new GpuEvent.GpuFault(at, gpu, new GpuId(message.text("on")), message.text("reason"));
      default -> throw new MalformedMessageException("no such event: " + message.text("kind"));
    };
  }

  private static MemorySize bytes(Message message) {
    return MemorySize.ofBytes(Math.max(0, message.number("bytes")));
  }

  private static Instant instant(String text) {
    try {
      return Instant.parse(text);
    } catch (DateTimeException e) {
      throw new MalformedMessageException("not a time: " + text, e);
    }
  }

  /**
   * Adds events to a message.
   *
   * @param message the message
   * @param events the events
   */
  public static void put(Message message, List<GpuEvent> events) {
    message.with(COUNT, events.size());
    for (int i = 0; i < events.size(); i++) {
      message.with("event." + i + ".", of(events.get(i)).under(""));
    }
  }

  /**
   * {@return the events in a message}
   *
   * @param message a message filled by {@link #put}
   */
  public static List<GpuEvent> events(Message message) {
    List<GpuEvent> events = new ArrayList<>();
    long count = Math.min(MOST_EVENTS, message.number(COUNT));
    Map<String, Message> each = new HashMap<>();
    message
        .under("event.")
        .forEach(
            (name, value) -> {
              int dot = name.indexOf('.');
              if (dot > 0) {
                each.computeIfAbsent(name.substring(0, dot), number -> new Message(TYPE))
                    .with(name.substring(dot + 1), value);
              }
            });
    for (int i = 0; i < count; i++) {
      Message of = each.get("" + i);
      if (of == null) {
        throw new MalformedMessageException("an event is missing: " + i);
      }
      events.add(event(of));
    }
    return List.copyOf(events);
  }
}
