package dev.vgpu.core.pool;

import dev.vgpu.GpuId;
import dev.vgpu.VgpuException;
import dev.vgpu.VirtualGpuRequest;
import dev.vgpu.core.seat.LeaseRecord;
import dev.vgpu.core.seat.Link;
import dev.vgpu.core.seat.LinkLoop;
import dev.vgpu.core.seat.Message;
import dev.vgpu.core.seat.ProcessIdentity;
import dev.vgpu.core.seat.RequestValues;
import java.io.IOException;
import java.net.StandardProtocolFamily;
import java.net.UnixDomainSocketAddress;
import java.nio.channels.ServerSocketChannel;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Collection;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Optional;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Serves the other processes of the node, while this one holds the seat. Confined to the loop's
 * thread, but for what says otherwise.
 */
final class SeatServer implements AutoCloseable {
  private static final Logger log = LoggerFactory.getLogger(SeatServer.class);
  private static final int BACKLOG = 512;
  private static final int MOST_SESSIONS = 512;
  private static final int MOST_UNGREETED = 64;
  private static final long MILLI_NS = 1_000_000;

  /** How long a living process may take to come back with its leases. */
  static final long GRACE_NS = 1_000 * MILLI_NS;

  private static final long AWAITED_EVERY_NS = 2 * MILLI_NS;
  private static final long KEPT_EVERY_NS = 100 * MILLI_NS;

  private final Node node;
  private final LocalAuthority authority;
  private final LinkLoop loop;
  private final Set<ClientSession> sessions = new LinkedHashSet<>();
  private final Set<ClientSession> ungreeted = new LinkedHashSet<>();

  /** Those whose process is not connected now. */
  private final Set<RemoteLease> awaited = ConcurrentHashMap.newKeySet();

  private @Nullable ServerSocketChannel server;
  private long keptDueNs;
  private volatile boolean keepsEnded;

  SeatServer(Node node, LocalAuthority authority, LinkLoop loop) {
    this.node = node;
    this.authority = authority;
    this.loop = loop;
    this.keptDueNs = node.clock().nanoTime();
    authority.table().whenKept(this::lookAgain);
  }

  Node node() {
    return node;
  }

  LocalAuthority authority() {
    return authority;
  }

  LeaseTable table() {
    return authority.table();
  }

  /** Lets others connect. Called once, by who has taken the seat. */
  void listen(Path socket) {
    try {
      Files.deleteIfExists(socket); // the last holder's, who is gone
      ServerSocketChannel channel = ServerSocketChannel.open(StandardProtocolFamily.UNIX);
      server = channel;
      channel.bind(UnixDomainSocketAddress.of(socket), BACKLOG);
      loop.listen(channel, accepted -> accept());
      loop.ticker(this::tick);
    } catch (IOException e) {
      throw new VgpuException(
          "the seat's socket cannot be made: path=" + socket + ": " + e.getMessage(), e);
    }
  }

  private Link.@Nullable Handler accept() {
    if (sessions.size() >= MOST_SESSIONS) {
      log.warn("a process was turned away: {} are connected already", sessions.size());
      return null;
    }
    if (ungreeted.size() >= MOST_UNGREETED) {
      ClientSession oldest = ungreeted.iterator().next();
      ungreeted.remove(oldest);
      oldest.close("it has not said who it is, and others want to");
    }
    ClientSession session = new ClientSession(this);
    ungreeted.add(session);
    return session;
  }

  void greeted(ClientSession session) {
    ungreeted.remove(session);
    sessions.add(session);
  }

  // ---- leases of other processes

  /** On any thread. */
  RemoteLease remoteLease(
      String id, List<GpuSlot> on, VirtualGpuRequest request, ProcessIdentity owner) {
    GpuSlot first = on.get(0);
    long turnNs = node.settings().of(first.gpu.id()).shortestTurn().toNanos();
    return new RemoteLease(id, first.seat, turnNs, request, owner);
  }

  /** Books a lease of another process, which may come back for it. Before others can connect. */
  void restore(LeaseRecord record, List<GpuSlot> slots) {
    RemoteLease[] made = new RemoteLease[1];
    Booking booking =
        table()
            .restore(
                record,
                slots,
                new Owner(record.owner()) {
                  @Override
                  public BookedCalls calls(String id, List<GpuSlot> on, VirtualGpuRequest request) {
                    made[0] = remoteLease(id, on, request, record.owner());
                    return made[0];
                  }
                });
    authority.takeOver(booking);
    booking.gate.adopt(null);
    await(made[0]);
  }

  /** A process that is not connected. */
  abstract static class Owner implements Asked.Claimant {
    private final ProcessIdentity process;

    Owner(ProcessIdentity process) {
      this.process = process;
    }

    @Override
    public Object owner() {
      return this;
    }

    @Override
    public boolean isClosed() {
      return false;
    }

    @Override
    public ProcessIdentity process() {
      return process;
    }
  }

  private void await(RemoteLease lease) {
    lease.gate.disconnected();
    lease.awaitedUntilNs = node.clock().nanoTime() + GRACE_NS;
    awaited.add(lease);
  }

  /** A process comes for a lease that it had before. */
  RemoteLease claim(String id, ProcessIdentity by, Message message) {
    Optional<Booking> known = table().booking(id);
    if (known.isEmpty()) {
      return restoreClaimed(id, by, message);
    }
    Booking booking = known.get();
    if (!booking.owner.equals(by) || !(booking.calls instanceof RemoteLease lease)) {
      throw new IllegalStateException(
          "the virtual GPU is another process's: id=" + id + " owner=" + booking.owner);
    }
    awaited.remove(lease);
    return lease;
  }

  /** It is not on disk: what its process says is taken. */
  private RemoteLease restoreClaimed(String id, ProcessIdentity by, Message message) {
    VirtualGpuRequest request = RequestValues.request(message.under(Protocol.REQUEST));
    List<GpuId> gpus = RequestValues.gpus(message::find);
    List<GpuSlot> slots =
        table().slots(gpus).orElseThrow(() -> new IllegalStateException("no such GPU: " + gpus));
    if (!LeaseRecord.isId(id)
        || slots.size() != request.gpuCount()
        || !slots.stream().allMatch(slot -> slot.fits(request))) {
      throw new IllegalStateException("the virtual GPU was given to others: id=" + id);
    }
    restore(new LeaseRecord(id, gpus, request, by, Optional.empty(), List.of()), slots);
    return claim(id, by, message);
  }

  /** A process has come for all that it still has. */
  void claimed(ProcessIdentity by, Set<String> ids) {
    for (RemoteLease lease : List.copyOf(awaited)) {
      if (lease.booking().owner.equals(by) && !ids.contains(lease.id)) {
        awaited.remove(lease);
        end(lease);
      }
    }
  }

  /** A lease is closed by its process, or its process is dead. */
  void end(RemoteLease lease) {
    if (lease.close()) {
      lease.gate.ended();
      LeaseTable table = table();
      if (lease.booking().enforced() == null) {
        table.ended(lease.booking());
      } else {
        // It may take a while.
        node.workers().execute(() -> table.ended(lease.booking()));
      }
    }
  }

  void gone(ClientSession session, Collection<RemoteLease> leases) {
    sessions.remove(session);
    ungreeted.remove(session);
    for (RemoteLease lease : leases) {
      if (lease.session != session) {
        continue; // its process has come again already
      }
      if (!session.process().isAlive()) {
        end(lease);
      } else if (!lease.isClosed()) {
        await(lease); // it is dying, or will connect again
      }
    }
  }

  private long tick(long nowNs) {
    long nextNs = Long.MAX_VALUE;
    for (RemoteLease lease : List.copyOf(awaited)) {
      if (!lease.booking().owner.isAlive() || nowNs - lease.awaitedUntilNs >= 0) {
        awaited.remove(lease);
        end(lease);
      }
    }
    if (!awaited.isEmpty()) {
      nextNs = nowNs + AWAITED_EVERY_NS;
    }
    if (keepsEnded) {
      if (nowNs - keptDueNs >= 0) {
        keptDueNs = nowNs + KEPT_EVERY_NS;
        keepsEnded = false; // before looking: what ends meanwhile sets it again
        LeaseTable table = table();
        node.workers().execute(table::releaseUnused);
      }
      nextNs = Math.min(nextNs, keptDueNs);
    }
    return nextNs;
  }

  /** A lease has ended and is kept for its programs. On any thread. */
  private void lookAgain() {
    keepsEnded = true;
    loop.wakeup();
  }

  /** Listens no more. */
  @Override
  public void close() {
    ServerSocketChannel channel = server;
    if (channel != null) {
      try {
        if (channel.getLocalAddress() instanceof UnixDomainSocketAddress bound) {
          Files.deleteIfExists(bound.getPath());
        }
        channel.close();
      } catch (IOException e) {
        log.debug("the seat's socket could not be closed", e);
      }
    }
  }
}
