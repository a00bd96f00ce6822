package dev.vgpu.core.wire;

import dev.vgpu.request.GpuId;
import dev.vgpu.request.MemorySize;
import dev.vgpu.request.VirtualGpuRequest;
import dev.vgpu.watch.GpuEvent;
import java.time.DateTimeException;
import java.time.Instant;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.function.BiConsumer;
import java.util.function.BiFunction;
import java.util.function.Function;
import java.util.stream.Collectors;

/** Encodes and decodes events. */
public final class EventValues {
  /** The type of event messages. */
  public static final String TYPE = "event";

  private static final String COUNT = "event.count";
  private static final int MOST_EVENTS = 1_000;

  /** The fields that every event has. */
  private record Head(Instant at, String gpu) {}

  /**
   * How one kind of event is sent.
   *
   * @param <E> the kind
   * @param name its name on the wire
   * @param type its class
   * @param put adds all but the head to a message
   * @param get reads it
   */
  private record Kind<E extends GpuEvent>(
      String name, Class<E> type, BiConsumer<E, Message> put, BiFunction<Head, Message, E> get) {
    void putInto(Message message, GpuEvent event) {
      put.accept(type.cast(event), message);
    }
  }

  /** A kind that says only why. */
  private static <E extends GpuEvent> Kind<E> reasoned(
      String name, Class<E> type, Function<E, String> reason, Reasoned<E> make) {
    return new Kind<>(
        name,
        type,
        (event, to) -> to.with("reason", reason.apply(event)),
        (head, of) -> make.of(head.at, head.gpu, of.text("reason")));
  }

  private interface Reasoned<E> {
    E of(Instant at, String gpu, String reason);
  }

  private static final List<Kind<?>> KINDS =
      List.of(
          new Kind<>(
              "Acquired",
              GpuEvent.Acquired.class,
              (event, to) ->
                  to.with("on", event.gpu()).with("request.", RequestValues.of(event.request())),
              (head, of) ->
                  new GpuEvent.Acquired(head.at, head.gpu, on(of), request(of, "request."))),
          new Kind<>(
              "Refused",
              GpuEvent.Refused.class,
              (event, to) ->
                  to.with("request.", RequestValues.of(event.request()))
                      .with("reason", event.reason()),
              (head, of) ->
                  new GpuEvent.Refused(
                      head.at, head.gpu, request(of, "request."), of.text("reason"))),
          new Kind<>(
              "Resized",
              GpuEvent.Resized.class,
              (event, to) ->
                  to.with("before.", RequestValues.of(event.before()))
                      .with("after.", RequestValues.of(event.after())),
              (head, of) ->
                  new GpuEvent.Resized(
                      head.at, head.gpu, request(of, "before."), request(of, "after."))),
          new Kind<>(
              "Preempted",
              GpuEvent.Preempted.class,
              (event, to) ->
                  to.with("by", event.by())
                      .with("cancelled", event.cancelledCalls())
                      .with("times", event.times()),
              (head, of) ->
                  new GpuEvent.Preempted(
                      head.at,
                      head.gpu,
                      of.text("by"),
                      Math.toIntExact(of.number("cancelled")),
                      of.number("times"))),
          new Kind<>(
              "AllocationDenied",
              GpuEvent.AllocationDenied.class,
              (event, to) -> to.with("count", event.count()).with("reason", event.reason()),
              (head, of) ->
                  new GpuEvent.AllocationDenied(
                      head.at, head.gpu, of.number("count"), of.text("reason"))),
          new Kind<>(
              "SharingChanged",
              GpuEvent.SharingChanged.class,
              (event, to) ->
                  to.with("on", event.gpu())
                      .with("mode", StateValues.of(event.mode()))
                      .with("reason", event.reason()),
              (head, of) ->
                  new GpuEvent.SharingChanged(
                      head.at,
                      head.gpu,
                      on(of),
                      StateValues.mode(of.text("mode")),
                      of.text("reason"))),
          new Kind<>(
              "Leaked",
              GpuEvent.Leaked.class,
              (event, to) -> {},
              (head, of) -> new GpuEvent.Leaked(head.at, head.gpu)),
          new Kind<>(
              "Closed",
              GpuEvent.Closed.class,
              (event, to) -> LeaseValues.put(to, "usage.", event.usage()),
              (head, of) ->
                  new GpuEvent.Closed(head.at, head.gpu, LeaseValues.usage(of, "usage."))),
          new Kind<>(
              "ReclaimAsked",
              GpuEvent.ReclaimAsked.class,
              (event, to) ->
                  to.with("bytes", event.wanted().bytes()).with("reason", event.reason()),
              (head, of) ->
                  new GpuEvent.ReclaimAsked(head.at, head.gpu, bytes(of), of.text("reason"))),
          new Kind<>(
              "Suspended",
              GpuEvent.Suspended.class,
              (event, to) -> to.with("bytes", event.freed().bytes()).with("reason", event.reason()),
              (head, of) ->
                  new GpuEvent.Suspended(head.at, head.gpu, bytes(of), of.text("reason"))),
          new Kind<>(
              "EndedByReclaim",
              GpuEvent.EndedByReclaim.class,
              (event, to) ->
                  to.with(
                          "processes",
                          event.processes().stream()
                              .map(String::valueOf)
                              .collect(Collectors.joining(" ")))
                      .with("reason", event.reason()),
              (head, of) ->
                  new GpuEvent.EndedByReclaim(
                      head.at,
                      head.gpu,
                      LeaseValues.pids(of.text("processes")),
                      of.text("reason"))),
          new Kind<>(
              "HealthChanged",
              GpuEvent.HealthChanged.class,
              (event, to) ->
                  to.with("on", event.gpu())
                      .with("health", StateValues.of(event.health()))
                      .with("reason", event.reason()),
              (head, of) ->
                  new GpuEvent.HealthChanged(
                      head.at,
                      head.gpu,
                      on(of),
                      StateValues.health(of.text("health")),
                      of.text("reason"))),
          new Kind<>(
              "GpuFault",
              GpuEvent.GpuFault.class,
              (event, to) -> to.with("on", event.gpu()).with("reason", event.reason()),
              (head, of) -> new GpuEvent.GpuFault(head.at, head.gpu, on(of), of.text("reason"))),
          reasoned(
              "CancelFailed",
              GpuEvent.CancelFailed.class,
              GpuEvent.CancelFailed::reason,
              GpuEvent.CancelFailed::new),
          reasoned(
              "SuspectReport",
              GpuEvent.SuspectReport.class,
              GpuEvent.SuspectReport::reason,
              GpuEvent.SuspectReport::new),
          reasoned(
              "Disturbed",
              GpuEvent.Disturbed.class,
              GpuEvent.Disturbed::reason,
              GpuEvent.Disturbed::new),
          reasoned(
              "MeteringFailed",
              GpuEvent.MeteringFailed.class,
              GpuEvent.MeteringFailed::reason,
              GpuEvent.MeteringFailed::new),
          reasoned(
              "Resumed", GpuEvent.Resumed.class, GpuEvent.Resumed::reason, GpuEvent.Resumed::new),
          reasoned(
              "HeldBack",
              GpuEvent.HeldBack.class,
              GpuEvent.HeldBack::reason,
              GpuEvent.HeldBack::new));

  private static final Map<Class<?>, Kind<?>> BY_TYPE =
      KINDS.stream().collect(Collectors.toUnmodifiableMap(Kind::type, kind -> kind));

  private static final Map<String, Kind<?>> BY_NAME =
      KINDS.stream().collect(Collectors.toUnmodifiableMap(Kind::name, kind -> kind));

  private EventValues() {}

  /**
   * {@return an event as a message}
   *
   * @param event the event
   * @throws IllegalArgumentException if it is of a class that has no kind here
   */
  public static Message of(GpuEvent event) {
    Kind<?> kind = BY_TYPE.get(event.getClass());
    if (kind == null) {
      throw new IllegalArgumentException("an event of an unknown kind: " + event);
    }
    Message message =
        new Message(TYPE)
            .with("kind", kind.name)
            .with("at", event.at())
            .with("gpu", event.virtualGpu());
    kind.putInto(message, event);
    return message;
  }

  /**
   * {@return the event in a message}
   *
   * @param message a message created by {@link #of}
   */
  public static GpuEvent event(Message message) {
    Kind<?> kind = BY_NAME.get(message.text("kind"));
    if (kind == null) {
      throw new MalformedMessageException("no such event: " + message.text("kind"));
    }
    return kind.get.apply(new Head(instant(message.text("at")), message.text("gpu")), message);
  }

  private static GpuId on(Message message) {
    return new GpuId(message.text("on"));
  }

  private static VirtualGpuRequest request(Message message, String prefix) {
    return RequestValues.request(message.under(prefix));
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
