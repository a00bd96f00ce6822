package dev.vgpu.cuda.hook;

import dev.vgpu.VgpuException;
import dev.vgpu.cuda.pages.LeasePages;
import dev.vgpu.cuda.pages.PassedFiles;
import dev.vgpu.cuda.pages.Wake;
import dev.vgpu.cuda.process.NanoClock;
import dev.vgpu.files.FileAccess;
import dev.vgpu.files.OpenFiles;
import dev.vgpu.files.SlowCloses;
import dev.vgpu.spi.UnreadFiles;
import java.io.IOException;
import java.net.StandardProtocolFamily;
import java.net.UnixDomainSocketAddress;
import java.nio.channels.CancelledKeyException;
import java.nio.channels.SelectionKey;
import java.nio.channels.Selector;
import java.nio.channels.ServerSocketChannel;
import java.nio.channels.SocketChannel;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.attribute.UserPrincipal;
import java.util.ArrayList;
import java.util.Collection;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Queue;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.function.Function;
import java.util.regex.Pattern;
import jdk.net.ExtendedSocketOptions;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Serves {@code hook.sock} and watches the processes of all leases, on one thread that sleeps while
 * no process is attached. The end of a socket reports a death at once.
 */
final class HookServer implements AutoCloseable {
  private static final Logger log = LoggerFactory.getLogger(HookServer.class);

  /** How often the seat renews its heartbeat while processes are attached. */
  private static final long BEAT_MS = 2;

  /**
   * The same while no process has work. Each process then announces the start of its work, and
   * counts the seat as dead only after a quarter of a second.
   */
  private static final long IDLE_BEAT_MS = 100;

  /** While no process has work, one that seems well is checked every this many beats. */
  private static final int IDLE_BEATS_A_CHECK = 4;

  /** How often a tenant is checked whose work must end. */
  private static final long DRAIN_MS = 1;

  /** The shortest time between two checks, however many messages arrive. */
  private static final long TICK_NS = 900_000;

  /** How long a connection may stay open without a HELLO. */
  private static final long HELLO_NS = 2_000_000_000L;

  private static final long HELLO_CHECK_MS = 100;
  private static final Pattern ID = Pattern.compile("[A-Za-z0-9][A-Za-z0-9._-]{0,94}");
  private static final int MOST_ENDED = 4_096;
  private static final int MOST_CONNECTIONS = 4_096;
  private static final int MOST_STRANGERS = 256;
  private static final int ACCEPTS_AT_A_TIME = 16;
  private static final int CLOSING_THREADS = 16;

  /** The longest path that a Unix socket address can hold. */
  private static final int MOST_PATH_BYTES = 107;

  private final Path path;
  private final NanoClock clock;
  private final Selector selector;
  private final ServerSocketChannel server;
  private final OwnSocket socket;
  private final UserPrincipal owner;
  private final SelectionKey serverKey;
  private final @Nullable UnreadFiles unread;
  private final SlowCloses closes;
  private final SeatThread seatThread;
  private final Map<String, HookLease> leases = new ConcurrentHashMap<>();
  private final int mostStrangers;
  private final int mostAttached;
  private final Set<String> ended = ConcurrentHashMap.newKeySet();
  private final Queue<HookConnection> toClose = new ConcurrentLinkedQueue<>();
  private final Queue<Runnable> asked = new ConcurrentLinkedQueue<>();
  private final Thread thread;
  private final List<HookLease> attached = new ArrayList<>();
  private int beats;
  private int nextToCheck;

  /** Whether no attached process had work when the last sleep began. */
  private boolean resting;

  private int strangers;
  private long acceptAgainNs;
  private long tickedNs;
  private volatile boolean closed;

  /** Whether the last round went well. Confined to the thread. */
  private boolean sound = true;

  /** Whether the thread waits for the kernel to wake it. */
  private volatile boolean asleep;

  HookServer(Path path, FileAccess access, NanoClock clock, Wake wake) {
    this(path, access, clock, wake, PassedFiles::refuse);
  }

  /** {@code protect} makes the kernel refuse files that are passed to a socket, or finds them. */
  HookServer(
      Path path,
      FileAccess access,
      NanoClock clock,
      Wake wake,
      Function<Path, Optional<UnreadFiles>> protect) {
    this.path = path;
    this.seatThread = new SeatThread(wake);
    this.clock = clock;
    int most = OpenFiles.part(MOST_CONNECTIONS);
    this.mostStrangers = Math.max(1, Math.min(MOST_STRANGERS, most / 4));
    this.mostAttached = most - mostStrangers;
    if (path.toString().getBytes(StandardCharsets.UTF_8).length > MOST_PATH_BYTES) {
      throw new VgpuException(
          "the run directory's path is too long for a socket in it: path="
              + path
              + " bytes at most="
              + MOST_PATH_BYTES);
    }
    try {
      Files.deleteIfExists(path);
      this.selector = Selector.open();
      this.closes = new SlowCloses(selector, "vgpu-hook-close", CLOSING_THREADS, mostStrangers);
      this.server = ServerSocketChannel.open(StandardProtocolFamily.UNIX);
      server.bind(UnixDomainSocketAddress.of(path), 512);
      this.socket = new OwnSocket(path);
      this.owner = Files.getOwner(path);
      this.unread = protect.apply(path).orElse(null); // before others can connect
      access.apply(path, true);
      server.configureBlocking(false);
      this.serverKey = server.register(selector, SelectionKey.OP_ACCEPT);
    } catch (IOException e) {
      throw new VgpuException("cannot listen for programs: " + e.getMessage() + " path=" + path, e);
    }
    this.thread = new Thread(this::run, "vgpu-hook-seat");
    thread.setDaemon(true);
  }

  void start() {
    thread.start();
  }

  /**
   * Links the socket into a lease's directory, which is all that a container sees of the run
   * directory. Without the link, programs in containers cannot attach; all others can.
   */
  private void link(String id) {
    Path name = path.resolveSibling("leases").resolve(id).resolve(path.getFileName());
    try {
      Files.deleteIfExists(name);
      Files.createLink(name, path);
    } catch (IOException | UnsupportedOperationException e) {
      log.warn("containers cannot use the virtual GPU: id={} reason={}", id, e.toString());
    }
  }

  /** Publishes a lease: its processes can attach from now on. */
  void add(HookLease lease) {
    link(lease.id);
    ended.remove(lease.id);
    leases.put(lease.id, lease);
    seatThread.changed();
    selector.wakeup();
  }

  /** Withdraws a lease: no process can attach any more. */
  void remove(String id) {
    if (ended.size() >= MOST_ENDED) {
      ended.clear();
    }
    ended.add(id);
    leases.remove(id);
    seatThread.changed();
  }

  /**
   * {@return whether a lease has a directory but is not ready yet} A process that has just taken
   * the seat prepares the leases one after the other, and serves the socket meanwhile.
   */
  boolean isStillToCome(String id) {
    return !leases.containsKey(id)
        && !ended.contains(id)
        && ID.matcher(id).matches()
        && Files.exists(path.resolveSibling("leases").resolve(id).resolve(LeasePages.REPORT));
  }

  /** {@return the lease of that name; null if none is ready} */
  @Nullable HookLease lease(String id) {
    return leases.get(id);
  }

  /**
   * {@return whether the process at the other end runs as the lease's member, or as this process's
   * user} The secret alone does not prove that: a group that several users have in common may read
   * the grant. Only leases of members are looked at, since the kernel's answer contains names.
   *
   * @throws IOException if the connection is broken
   */
  boolean isOf(SocketChannel channel, HookLease lease) throws IOException {
    if (lease.member.isEmpty()) {
      return true;
    }
    UserPrincipal user = channel.getOption(ExtendedSocketOptions.SO_PEERCRED).user();
    return user.equals(lease.member.get()) || user.equals(owner);
  }

  /**
   * {@return whether a process of a lease may stay connected} All connections together leave some
   * descriptors to the host. A new process needs more free places than its lease has connections,
   * so no lease can keep another one out.
   *
   * @param isNew whether it has no slot yet
   */
  boolean hasRoom(HookLease lease, boolean isNew) {
    int free = mostAttached - (selector.keys().size() - 1 - strangers);
    return free > (isNew ? lease.connected() : 0);
  }

  Collection<HookLease> leases() {
    return leases.values();
  }

  /** Closes a connection soon, on the server's thread. */
  void close(HookConnection connection) {
    toClose.add(connection);
    selector.wakeup();
  }

  /**
   * Runs a callback as soon as the server's thread serves: here if it sleeps, since the kernel
   * wakes it for the next program; else on that thread.
   */
  void whenServing(Runnable answers) {
    if (asleep && asked.isEmpty()) {
      answers.run();
      return;
    }
    asked.add(answers);
    selector.wakeup();
  }

  private void run() {
    while (!closed) {
      try {
        step();
      } catch (IOException e) {
        log.warn("the hook's socket failed: path={}", path, e);
      } catch (RuntimeException | Error e) {
        // Catch everything: the processes of all leases depend on this thread.
        log.error("error in the hook server; continuing", e);
      }
    }
    seatThread.ended();
  }

  private void step() throws IOException {
    long timeout = timeoutMs();
    asleep = sound;
    sound = false;
    try {
      selector.select(this::ready, timeout);
    } finally {
      asleep = false;
    }
    closes.selected();
    HookConnection connection = toClose.poll();
    while (connection != null) {
      close(connection, "its virtual GPU has ended, or it has another one");
      connection = toClose.poll();
    }
    seatThread.follow(() -> leases.values().stream().map(lease -> lease.grant).toList());
    long now = clock.nanoTime();
    tick(now);
    for (Runnable answers = asked.poll(); answers != null; answers = asked.poll()) {
      answers.run();
    }
    if (strangers > 0) {
      closeStrangers(now);
    }
    sound = true;
    if (!serverKey.isValid()) {
      return;
    }
    if (serverKey.interestOps() == 0 && now - acceptAgainNs > 0) {
      serverKey.interestOps(SelectionKey.OP_ACCEPT);
    }
  }

  /** {@return how many ms to sleep; 0: until an event} */
  private long timeoutMs() {
    long timeout = strangers > 0 || serverKey.interestOps() == 0 ? HELLO_CHECK_MS : 0;
    attached.clear();
    for (HookLease lease : leases.values()) {
      if (lease.isAttached()) {
        attached.add(lease);
        timeout = timeout == BEAT_MS || !lease.isIdle() ? BEAT_MS : IDLE_BEAT_MS;
      }
    }
    resting = timeout == IDLE_BEAT_MS;
    for (HookLease lease : attached) {
      if (lease.rests(resting) && resting) {
        timeout = BEAT_MS;
      }
    }
    for (HookLease lease : attached) {
      if (lease.isDraining()) {
        timeout = DRAIN_MS;
      }
    }
    return timeout;
  }

  private void tick(long nowNs) {
    if (attached.isEmpty() || nowNs - tickedNs < TICK_NS) {
      return;
    }
    tickedNs = nowNs;
    beats++;
    boolean checks = !resting || beats % IDLE_BEATS_A_CHECK == 0;
    nextToCheck = (nextToCheck + (checks ? 1 : 0)) % attached.size();
    for (int i = 0; i < attached.size() && !closed; i++) { // stops once the seat is closed
      attached.get(i).tick(nowNs, checks && i == nextToCheck);
    }
  }

  private void ready(SelectionKey key) {
    asleep = false;
    try {
      if (key.isAcceptable()) {
        accept();
      } else if (key.attachment() instanceof HookConnection connection) {
        read(connection);
        tick(clock.nanoTime()); // here too: many that send without a pause must not delay it
      }
    } catch (CancelledKeyException e) {
      log.debug("a connection was closed while it was ready");
    }
  }

  private void accept() {
    try {
      for (int i = 0; i < ACCEPTS_AT_A_TIME; i++) {
        if (closes.areMany()) {
          throw new IOException("others pass files whose end takes long");
        }
        SocketChannel channel = server.accept();
        if (channel == null) {
          return;
        }
        HookConnection accepted = connection(channel);
        if (strangers >= mostStrangers) {
          // An honest process sends its HELLO at once, so the oldest connection without one goes.
          closeOldestStranger();
        }
        channel.configureBlocking(false);
        channel.register(selector, SelectionKey.OP_READ, accepted);
        strangers++;
      }
    } catch (IOException e) {
      // Probably out of descriptors; tried again later.
      log.warn("cannot accept a program's connection: {}", e.getMessage());
      serverKey.interestOps(0);
      acceptAgainNs = clock.nanoTime() + HELLO_CHECK_MS * 1_000_000;
    }
  }

  private HookConnection connection(SocketChannel channel) throws IOException {
    UnreadFiles.Connection seen = null;
    try {
      seen = unread == null ? null : unread.accepted();
    } finally {
      if (seen == null && unread != null) {
        closes.unregistered(channel);
      }
    }
    return new HookConnection(channel, seen, this, clock.nanoTime());
  }

  private void read(HookConnection connection) {
    @Nullable String reason;
    try {
      reason = connection.read(clock.nanoTime());
    } catch (IOException e) {
      reason = "broken: " + e.getMessage();
    }
    if (connection.isStranger && (connection.isAttached() || reason != null)) {
      connection.isStranger = false;
      strangers--;
    }
    if (reason != null) {
      close(connection, reason);
    }
  }

  private void closeStrangers(long nowNs) {
    for (HookConnection connection : strangers()) {
      if (nowNs - connection.openedNs > HELLO_NS) {
        closeStranger(connection, "it said nothing");
      }
    }
  }

  private void closeOldestStranger() {
    HookConnection oldest = null;
    for (HookConnection connection : strangers()) {
      if (oldest == null || connection.openedNs - oldest.openedNs < 0) {
        oldest = connection;
      }
    }
    if (oldest != null) {
      closeStranger(oldest, "too many say nothing");
    }
  }

  private List<HookConnection> strangers() {
    List<HookConnection> found = new ArrayList<>();
    for (SelectionKey key : selector.keys()) {
      if (key.attachment() instanceof HookConnection connection
          && key.isValid()
          && connection.isStranger) {
        found.add(connection);
      }
    }
    return found;
  }

  private void closeStranger(HookConnection connection, String reason) {
    connection.isStranger = false;
    strangers--;
    closeChannel(connection, reason);
  }

  private void close(HookConnection connection, String reason) {
    closeChannel(connection, reason);
    connection.closed();
  }

  private void closeChannel(HookConnection connection, String reason) {
    log.debug("closing a program's connection: {}", reason);
    closes.close(connection.channel, connection.unread);
  }

  @Override
  public void close() {
    if (closed) {
      return;
    }
    closed = true;
    selector.wakeup();
    boolean interrupted = false;
    while (thread.isAlive() && thread != Thread.currentThread()) {
      try {
        thread.join();
      } catch (InterruptedException e) {
        interrupted = true;
      }
    }
    if (interrupted) {
      Thread.currentThread().interrupt();
    }
    for (SelectionKey key : List.copyOf(selector.keys())) {
      if (key.attachment() instanceof HookConnection connection) {
        closeChannel(connection, "the seat is given up");
      }
    }
    try (server;
        selector) { // closed last: until then, no other file can get our inode number
      socket.remove();
      for (SocketChannel each = server.accept(); each != null; each = server.accept()) {
        closeChannel(connection(each), "the seat is given up");
      }
    } catch (IOException e) {
      log.debug("the hook's socket would not close", e);
    }
    closes.ended();
  }
}
