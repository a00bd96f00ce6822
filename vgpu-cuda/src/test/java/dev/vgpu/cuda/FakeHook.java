package dev.vgpu.cuda;

import static dev.vgpu.cuda.layout.ShmLayout.GRANT_MORE_OFFSET;
import static dev.vgpu.cuda.layout.ShmLayout.GRANT_OFFSET;
import static dev.vgpu.cuda.layout.ShmLayout.GRANT_OPEN;
import static dev.vgpu.cuda.layout.ShmLayout.LAYOUT_MAJOR;
import static dev.vgpu.cuda.layout.ShmLayout.MESSAGE_HELLO;
import static dev.vgpu.cuda.layout.ShmLayout.MESSAGE_IDLE;
import static dev.vgpu.cuda.layout.ShmLayout.MESSAGE_VERSION;
import static dev.vgpu.cuda.layout.ShmLayout.MESSAGE_WANT;
import static dev.vgpu.cuda.layout.ShmLayout.NO_SLOT;
import static dev.vgpu.cuda.layout.ShmLayout.STATUS_OK;

import dev.vgpu.cuda.hook.HookMessage;
import dev.vgpu.cuda.layout.ShmLayout;
import dev.vgpu.cuda.layout.ShmLayout.Grant;
import dev.vgpu.cuda.layout.ShmLayout.GrantMore;
import dev.vgpu.cuda.layout.ShmLayout.Message;
import dev.vgpu.cuda.layout.ShmLayout.Slot;
import dev.vgpu.cuda.pages.LedgerProcess;
import dev.vgpu.cuda.pages.MemoryLedger;
import dev.vgpu.cuda.pages.SharedPage;
import dev.vgpu.cuda.process.ProcFiles;
import java.io.IOException;
import java.net.UnixDomainSocketAddress;
import java.nio.ByteBuffer;
import java.nio.channels.FileChannel;
import java.nio.channels.SocketChannel;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.util.concurrent.locks.LockSupport;

/** A process under a lease, as the seat sees it: the hook's protocol in Java. */
public final class FakeHook implements AutoCloseable {
  private static final ProcFiles PROC = new ProcFiles(Path.of("/proc"));

  public final SocketChannel channel;
  final String lease;
  final long pid;
  final SharedPage grant;
  final SharedPage report;
  public int slot = NO_SLOT;

  /** The namespace of its pid. If it is a container's, the seat cannot see the process. */
  final long namespace;

  /** The slot's secret, from the WELCOME. */
  public String slotSecret = "";

  volatile boolean stopped;
  private LedgerProcess memory;

  public FakeHook(Path runDirectory, String lease, long pid, long namespace) throws IOException {
    this.lease = lease;
    this.namespace = namespace;
    this.pid = pid;
    this.channel =
        SocketChannel.open(UnixDomainSocketAddress.of(runDirectory.resolve("hook.sock")));
    Path directory = runDirectory.resolve("leases").resolve(lease);
    this.grant = map(directory.resolve("grant"), ShmLayout.GRANT_SIZE);
    this.report = map(directory.resolve("report"), ShmLayout.REPORT_SIZE);
  }

  /** Attaches as a process of this namespace. */
  static FakeHook attach(Path runDirectory, String lease, long pid) throws IOException {
    return attach(runDirectory, lease, pid, PROC.pidNamespace());
  }

  /** Attaches as a process of some namespace. */
  static FakeHook attach(Path runDirectory, String lease, long pid, long namespace)
      throws IOException {
    FakeHook hook = new FakeHook(runDirectory, lease, pid, namespace);
    HookMessage welcome = hook.hello(NO_SLOT);
    if (welcome.status() != STATUS_OK) {
      hook.close();
      throw new IOException(welcome.status() + " " + welcome.text());
    }
    return hook;
  }

  /** Connects again, as after the death of the seat. */
  public FakeHook again(Path runDirectory) throws IOException {
    FakeHook hook = new FakeHook(runDirectory, lease, pid, namespace);
    hook.slotSecret = slotSecret;
    HookMessage welcome = hook.hello(slot);
    if (welcome.status() != STATUS_OK) {
      hook.close();
      throw new IOException(welcome.status() + " " + welcome.text());
    }
    return hook;
  }

  private static SharedPage map(Path file, int bytes) throws IOException {
    try (FileChannel channel =
        FileChannel.open(file, StandardOpenOption.READ, StandardOpenOption.WRITE)) {
      return new SharedPage(channel.map(FileChannel.MapMode.READ_WRITE, 0, bytes));
    }
  }

  /** The lease's secret, from its grant page. */
  public String leaseSecret() {
    byte[] bytes = new byte[GrantMore.SECRET_LENGTH];
    grant.buffer().get(GRANT_MORE_OFFSET + GrantMore.SECRET, bytes);
    return new String(bytes, StandardCharsets.US_ASCII).trim();
  }

  public HookMessage hello(int number) throws IOException {
    return hello(number, leaseSecret() + (number == NO_SLOT ? "" : " " + slotSecret));
  }

  /** Sends HELLO with these secrets. */
  public HookMessage hello(int number, String secrets) throws IOException {
    send(
        new HookMessage(
            MESSAGE_HELLO,
            MESSAGE_VERSION,
            number,
            0,
            pid,
            LAYOUT_MAJOR,
            PROC.startTime(pid),
            namespace,
            lease,
            secrets));
    HookMessage welcome = receive();
    if (welcome.status() == STATUS_OK) {
      slot = welcome.slot();
      slotSecret = welcome.text();
      startBeating();
      memory =
          new LedgerProcess(report, slot, grant.longAt(GRANT_OFFSET + Grant.MEMORY_LIMIT) / 256);
    }
    return welcome;
  }

  /** Renews the process's heartbeat like the hook's monitor, until it is stopped. */
  private void startBeating() {
    Thread monitor =
        new Thread(
            () -> {
              for (long beat = 1; channel.isOpen() && !stopped; beat++) {
                setLong(Slot.HEARTBEAT_NS, beat);
                LockSupport.parkNanos(1_000_000);
              }
            });
    monitor.setDaemon(true);
    monitor.start();
  }

  void send(HookMessage message) throws IOException {
    ByteBuffer bytes = message.bytes();
    while (bytes.hasRemaining()) {
      channel.write(bytes);
    }
  }

  HookMessage receive() throws IOException {
    ByteBuffer bytes = ByteBuffer.allocate(Message.BYTES);
    while (bytes.hasRemaining()) {
      if (channel.read(bytes) < 0) {
        throw new IOException("the seat closed the connection");
      }
    }
    return HookMessage.read(bytes.flip());
  }

  private void tell(int type) throws IOException {
    send(new HookMessage(type, MESSAGE_VERSION, slot, 0, pid, 0, 0, 0, "", ""));
  }

  /** A thread begins to wait for a turn, and announces it. */
  public void want() throws IOException {
    set(Slot.WAITING, 1);
    tell(MESSAGE_WANT);
  }

  /** It has its turn: its work is on the GPU. */
  void work() {
    set(Slot.BUSY, 1);
    set(Slot.WAITING, 0);
  }

  /** Its work has ended, and it announces that. */
  void idle() throws IOException {
    set(Slot.BUSY, 0);
    tell(MESSAGE_IDLE);
  }

  void set(int field, int value) {
    report.setInt(MemoryLedger.slotAt(slot) + field, value);
  }

  void setLong(int field, long value) {
    report.setLong(MemoryLedger.slotAt(slot) + field, value);
  }

  public boolean charge(long units) {
    return memory.change(units);
  }

  /** Charges memory on one of the lease's GPUs. */
  boolean charge(long units, int gpu) {
    return memory.change(units, gpu);
  }

  boolean isOpen() {
    return (grant.intAt(GRANT_OFFSET + Grant.WORD) & GRANT_OPEN) != 0;
  }

  @Override
  public void close() throws IOException {
    channel.close();
  }
}
