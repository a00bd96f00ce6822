package dev.vgpu.core.seat;

import static dev.vgpu.core.seat.Protocol.LEASE;
import static dev.vgpu.core.seat.Protocol.REQUEST;
import static dev.vgpu.core.seat.Protocol.USAGE;

import dev.vgpu.core.book.LeaseTable;
import dev.vgpu.core.discovery.ProgramTerms;
import dev.vgpu.core.node.LocalAuthority;
import dev.vgpu.core.wire.ChoiceValues;
import dev.vgpu.core.wire.EventValues;
import dev.vgpu.core.wire.LeaseValues;
import dev.vgpu.core.wire.MalformedMessageException;
import dev.vgpu.core.wire.Message;
import dev.vgpu.core.wire.RequestValues;
import dev.vgpu.core.wire.StateValues;
import dev.vgpu.core.wire.UsageValues;
import java.nio.file.Path;
import java.util.List;
import java.util.Optional;
import java.util.function.Function;

/** Answers what one client asks of the one who decides. Safe for use by several threads. */
final class ClientAnswers {
  private final LocalAuthority authority;
  private final LeaseTable table;
  private final Function<Message, RemoteLease> leases;

  /** Makes one; {@code leases} finds the client's own one that a message names. */
  ClientAnswers(LocalAuthority authority, Function<Message, RemoteLease> leases) {
    this.authority = authority;
    this.table = authority.table();
    this.leases = leases;
  }

  /** Adds the answer to a reply. May take long. */
  void put(Message message, Message reply) {
    switch (message.type()) {
      case Protocol.LEASES -> LeaseValues.putLeases(reply, table.leases());
      case Protocol.STATES -> StateValues.put(reply, authority.states());
      case Protocol.EVENTS -> EventValues.put(reply, authority.recentEvents());
      case Protocol.METERED -> UsageValues.put(reply, message, authority::usageSince);
      case Protocol.MAKE_ROOM -> {
        List<String> moved = authority.makeRoom(RequestValues.request(message.under(REQUEST)));
        for (int i = 0; i < moved.size(); i++) {
          reply.with(Protocol.MOVED + i, moved.get(i));
        }
      }
      case Protocol.SUSPEND -> authority.suspend(message.text(LEASE), message.number("timeoutNs"));
      case Protocol.RESUME -> authority.resume(message.text(LEASE), message.number("timeoutNs"));
      case Protocol.BACKENDS -> LeaseValues.putBackends(reply, authority.backends());
      case Protocol.CAPABILITIES ->
          reply.with(
              "can.", RequestValues.of(authority.capabilities(leases.apply(message).booking())));
      case Protocol.EXPLAIN ->
          ChoiceValues.put(reply, authority.explain(RequestValues.request(message.under(REQUEST))));
      case Protocol.ENVIRONMENT -> {
        Optional<Path> program = message.find("program").map(Path::of);
        ProgramTerms terms = authority.terms(leases.apply(message).booking(), program);
        reply.with("env.", terms.variables());
        for (int i = 0; i < terms.backends().size(); i++) {
          reply.with(Protocol.BACKEND + i, terms.backends().get(i));
        }
      }
      case Protocol.USED -> {
        RemoteLease lease = leases.apply(message);
        lease.gate.reported(LeaseValues.usage(message, USAGE));
        LeaseValues.put(reply, USAGE, lease.booking().usage());
      }
      default -> throw new MalformedMessageException("it asks for " + message.type());
    }
  }
}
