package dev.vgpu.core.seat;

import com.google.common.collect.Comparators;
import dev.vgpu.backend.BackendChoice;
import dev.vgpu.backend.BackendStatus;
import dev.vgpu.core.book.Booking;
import dev.vgpu.core.discovery.ProgramTerms;
import dev.vgpu.core.turn.UsageReading;
import dev.vgpu.core.wire.ChoiceValues;
import dev.vgpu.core.wire.EventValues;
import dev.vgpu.core.wire.LeaseValues;
import dev.vgpu.core.wire.Message;
import dev.vgpu.core.wire.RequestValues;
import dev.vgpu.core.wire.StateValues;
import dev.vgpu.core.wire.UsageValues;
import dev.vgpu.request.Capabilities;
import dev.vgpu.request.GpuId;
import dev.vgpu.request.VirtualGpuRequest;
import dev.vgpu.watch.GpuEvent;
import dev.vgpu.watch.GpuLease;
import dev.vgpu.watch.GpuState;
import dev.vgpu.watch.GpuUsage;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.function.BiConsumer;
import java.util.function.BiFunction;
import java.util.function.Function;
import java.util.stream.Collectors;
import java.util.stream.Stream;

/**
 * A request of a client that the seat answers. Each operation is declared here and nowhere else:
 * its name on the wire, its line, how question and answer are encoded, and what the seat does.
 * {@link SeatClient} sends it.
 *
 * @param line the line in which it runs, after the client's earlier messages are done
 * @param work runs in the seat's process; its exceptions are rethrown to the client's caller
 */
record Operation<Q, A>(
    String name,
    Line line,
    Codec<Q> question,
    Codec<A> answer,
    BiFunction<ClientSession, Q, A> work) {

  /** How an operation is ordered with the client's other operations. */
  enum Line {
    /** Quick: the client's next operation waits for it. */
    IN_ORDER,
    /** Reads what may be long; runs beside operations that change something. */
    READ,
    /** As {@link #READ}, for seconds. */
    READ_FILES,
    /** May take long, because a backend prepares, or because it waits for one that does. */
    PREPARE,
    /** May take long, because programs are moved or suspended. */
    CHANGE
  }

  /** Encodes a question or an answer into a message, and decodes it. */
  record Codec<T>(BiConsumer<Message, T> put, Function<Message, T> get) {}

  /** The empty question or answer. */
  enum Nothing {
    NOTHING
  }

  record Granted(String lease, List<GpuId> gpus) {}

  record Resize(String lease, VirtualGpuRequest request) {}

  record Timed(String lease, long timeoutNs) {}

  /** The usage of a lease, as the asking process has counted it. */
  record Used(String lease, UsageReading here) {}

  /** A program to be started under a lease; if {@code file} is present, it is checked. */
  record Program(String lease, Optional<Path> file) {}

  /**
   * A part of the list of leases, which may be longer than a message.
   *
   * @param next what the question for the next part says; empty if there is none
   */
  record Leases(List<GpuLease> part, String next) {
    private static final int MOST = 1_000;

    /**
     * {@return the part of a list that begins after a lease} The first begins after "". Only the
     * leases of the part are read, so the whole list reads each lease once.
     */
    static Leases after(String last, List<Booking> all) {
      if (last.isEmpty() && all.size() <= MOST) {
        return new Leases(Booking.snapshots(all), "");
      }
      List<Booking> part =
          all.stream()
              .filter(booking -> booking.id.compareTo(last) > 0)
              .collect(Comparators.least(MOST, Comparator.comparing(booking -> booking.id)));
      return new Leases(Booking.snapshots(part), part.size() < MOST ? "" : part.get(MOST - 1).id);
    }

    /** {@return the whole list} */
    static List<GpuLease> all(Function<String, Leases> ask) {
      List<GpuLease> all = new ArrayList<>();
      String next = "";
      do {
        Leases got = ask.apply(next);
        all.addAll(got.part);
        next = got.part.isEmpty() ? "" : got.next;
      } while (!next.isEmpty());
      return List.copyOf(all);
    }
  }

  private static final Codec<Nothing> NOTHING =
      new Codec<>((message, nothing) -> {}, message -> Nothing.NOTHING);

  private static final Codec<String> LEASE =
      new Codec<>(
          (message, id) -> message.with(Protocol.LEASE, id),
          message -> message.text(Protocol.LEASE));

  static final Codec<VirtualGpuRequest> REQUEST =
      new Codec<>(
          (message, request) -> message.with(Protocol.REQUEST, RequestValues.of(request)),
          message -> RequestValues.request(message.under(Protocol.REQUEST)));

  private static final Codec<Timed> TIMED =
      new Codec<>(
          (message, timed) ->
              message.with(Protocol.LEASE, timed.lease).with("timeoutNs", timed.timeoutNs),
          message -> new Timed(message.text(Protocol.LEASE), message.number("timeoutNs")));

  static final Codec<Granted> GRANTED =
      new Codec<>(
          (message, granted) ->
              message.with(Protocol.LEASE, granted.lease).with("", RequestValues.of(granted.gpus)),
          message -> new Granted(message.text(Protocol.LEASE), RequestValues.gpus(message::find)));

  static final Operation<Resize, Nothing> RESIZE =
      new Operation<>(
          "resize",
          Line.PREPARE,
          new Codec<>(
              (message, resize) -> {
                LEASE.put.accept(message, resize.lease);
                REQUEST.put.accept(message, resize.request);
              },
              message -> new Resize(LEASE.get.apply(message), REQUEST.get.apply(message))),
          NOTHING,
          (client, resize) -> {
            client
                .table()
                .resize(
                    client.lease(resize.lease).booking(), client.user().demanding(resize.request));
            return Nothing.NOTHING;
          });

  static final Operation<String, Leases> LEASES =
      new Operation<>(
          "leases",
          Line.READ,
          new Codec<>(
              (message, last) -> message.with("after", last),
              message -> message.find("after").orElse("")),
          new Codec<>(
              (message, leases) -> {
                LeaseValues.putLeases(message, leases.part);
                message.with("next", leases.next);
              },
              message -> new Leases(LeaseValues.leases(message), message.find("next").orElse(""))),
          (client, last) ->
              Leases.after(
                  last, client.user().visible(client.authority().bookings(), each -> each.id)));

  static final Operation<Nothing, List<GpuState>> STATES =
      new Operation<>(
          "states",
          Line.READ,
          NOTHING,
          new Codec<>(StateValues::put, StateValues::states),
          (client, nothing) -> client.authority().states());

  static final Operation<Nothing, List<GpuEvent>> EVENTS =
      new Operation<>(
          "events",
          Line.READ,
          NOTHING,
          new Codec<>(EventValues::put, EventValues::events),
          (client, nothing) ->
              client.authority().recentEvents().stream().filter(client.user()::maySee).toList());

  static final Operation<UsageValues.Question, UsageValues.Part> METERED =
      new Operation<>(
          "metered",
          Line.READ_FILES,
          new Codec<>(UsageValues::put, UsageValues::question),
          new Codec<>(UsageValues::put, UsageValues::part),
          (client, question) -> {
            question.check();
            return question.answer(
                client
                    .authority()
                    .usagePart(question.since(), question.next(), client.user().seen()));
          });

  static final Operation<VirtualGpuRequest, List<BackendChoice>> EXPLAIN =
      new Operation<>(
          "explain",
          Line.READ,
          REQUEST,
          new Codec<>(ChoiceValues::put, ChoiceValues::choices),
          (client, request) -> client.authority().explain(client.user().demanding(request)));

  static final Operation<Nothing, List<BackendStatus>> BACKENDS =
      new Operation<>(
          "backends",
          Line.PREPARE,
          NOTHING,
          new Codec<>(LeaseValues::putBackends, LeaseValues::backends),
          (client, nothing) -> client.authority().backends());

  static final Operation<Program, ProgramTerms> TERMS =
      new Operation<>(
          "environment",
          Line.PREPARE,
          new Codec<>(
              (message, program) -> {
                LEASE.put.accept(message, program.lease);
                program.file.ifPresent(file -> message.with("program", file));
              },
              message ->
                  new Program(LEASE.get.apply(message), message.find("program").map(Path::of))),
          new Codec<>(
              (message, terms) -> {
                message.with("env.", terms.variables());
                put(message, "launcher.", terms.launcher());
                put(message, "backend.", terms.backends());
                message.with("unchecked", terms.unchecked());
              },
              message ->
                  new ProgramTerms(
                      message.under("env."),
                      texts(message, "launcher."),
                      texts(message, "backend."),
                      message.flag("unchecked"))),
          (client, program) -> {
            Booking booking = client.lease(program.lease).booking();
            return client.member().isEmpty()
                ? client.authority().terms(booking, program.file)
                : client.authority().terms(booking, Optional.empty()).withoutCheck();
          });

  static final Operation<String, Capabilities> CAPABILITIES =
      new Operation<>(
          "capabilities",
          Line.IN_ORDER,
          LEASE,
          new Codec<>(
              (message, capabilities) -> message.with("can.", RequestValues.of(capabilities)),
              message -> RequestValues.capabilities("", message.under("can."))),
          (client, id) -> client.authority().capabilities(client.lease(id).booking()));

  static final Operation<Used, GpuUsage> USED =
      new Operation<>(
          "used",
          Line.IN_ORDER,
          new Codec<>(
              (message, used) -> {
                LEASE.put.accept(message, used.lease);
                LeaseValues.put(message, Protocol.USAGE, used.here);
              },
              message ->
                  new Used(LEASE.get.apply(message), LeaseValues.usage(message, Protocol.USAGE))),
          new Codec<>(
              (message, usage) -> LeaseValues.put(message, Protocol.USAGE, usage),
              message -> LeaseValues.usage(message, Protocol.USAGE)),
          (client, used) -> {
            RemoteLease lease = client.lease(used.lease);
            lease.gate.reported(used.here);
            return lease.booking().usage();
          });

  static final Operation<VirtualGpuRequest, List<String>> MAKE_ROOM =
      new Operation<>(
          "make-room",
          Line.CHANGE,
          REQUEST,
          new Codec<>(
              (message, moved) -> put(message, "moved.", moved),
              message -> texts(message, "moved.")),
          (client, request) ->
              client.authority().makeRoom(client.user().demanding(request), client.member()));

  static final Operation<Timed, Nothing> SUSPEND =
      new Operation<>(
          "suspend",
          Line.CHANGE,
          TIMED,
          NOTHING,
          (client, timed) -> {
            client.user().checkOwns(timed.lease);
            client.authority().suspend(timed.lease, timed.timeoutNs);
            return Nothing.NOTHING;
          });

  static final Operation<Timed, Nothing> RESUME =
      new Operation<>(
          "resume",
          Line.CHANGE,
          TIMED,
          NOTHING,
          (client, timed) -> {
            client.user().checkOwns(timed.lease);
            client.authority().resume(timed.lease, timed.timeoutNs);
            return Nothing.NOTHING;
          });

  /** All operations, by name. */
  static final Map<String, Operation<?, ?>> ALL =
      Stream.of(
              RESIZE,
              LEASES,
              STATES,
              EVENTS,
              METERED,
              EXPLAIN,
              BACKENDS,
              TERMS,
              CAPABILITIES,
              USED,
              MAKE_ROOM,
              SUSPEND,
              RESUME)
          .collect(Collectors.toUnmodifiableMap(Operation::name, each -> each));

  /** {@return the question as a message} */
  Message ask(Q asked) {
    Message message = new Message(name);
    question.put.accept(message, asked);
    return message;
  }

  /** Answers a client. May take long, except for operations in order. */
  void serve(ClientSession client, Message asked, Message reply) {
    answer.put.accept(reply, work.apply(client, question.get.apply(asked)));
  }

  private static void put(Message message, String prefix, List<String> texts) {
    for (int i = 0; i < texts.size(); i++) {
      message.with(prefix + i, texts.get(i));
    }
  }

  private static List<String> texts(Message message, String prefix) {
    List<String> texts = new ArrayList<>();
    for (int i = 0; message.find(prefix + i).isPresent(); i++) {
      texts.add(message.text(prefix + i));
    }
    return List.copyOf(texts);
  }
}
