package dev.vgpu.core.seat;

import dev.vgpu.GpuEvent;
import dev.vgpu.GpuId;
import dev.vgpu.MemorySize;
import java.time.DateTimeException;
import java.time.Instant;
import java.util.stream.Collectors;

/** Events as messages. */
public final class EventValues {
  /** The type of such messages. */
  public static final String TYPE = "event";

  private EventValues() {}

  /**
   * {@return a message that tells an event}
   *
   * @param event what happened
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
      message.with("by", preempted.by()).with("cancelled", preempted.cancelledCalls());
    } else if (event instanceof GpuEvent.CancelFailed failed) {
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
    }
  }

  /**
   * {@return the event}
   *
   * @param message as {@link #of} made it
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
              at, gpu, message.text("by"), Math.toIntExact(message.number("cancelled")));
      case "CancelFailed" -> new GpuEvent.CancelFailed(at, gpu, message.text("reason"));
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
}
