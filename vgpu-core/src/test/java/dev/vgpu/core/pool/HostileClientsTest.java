package dev.vgpu.core.pool;

import static dev.vgpu.request.PreemptionClass.NEARLINE;
import static dev.vgpu.request.PreemptionClass.ONLINE;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.assertj.core.api.Assertions.catchThrowableOfType;

import dev.vgpu.GpuCapacityException;
import dev.vgpu.GpuPool;
import dev.vgpu.GpuTurn;
import dev.vgpu.VgpuException;
import dev.vgpu.VirtualGpu;
import dev.vgpu.core.NanoClock;
import dev.vgpu.core.book.LeaseGrants;
import dev.vgpu.core.disk.ProcessIdentity;
import dev.vgpu.core.turn.UsageReading;
import dev.vgpu.core.wire.LeaseValues;
import dev.vgpu.core.wire.Message;
import dev.vgpu.core.wire.RequestValues;
import dev.vgpu.testing.Frames;
import dev.vgpu.watch.GpuLease;
import java.io.IOException;
import java.lang.management.ManagementFactory;
import java.net.UnixDomainSocketAddress;
import java.nio.ByteBuffer;
import java.nio.channels.SocketChannel;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.attribute.PosixFilePermissions;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.FutureTask;
import java.util.concurrent.atomic.AtomicLong;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** Limits to the harm that a hostile or broken client can do to the seat. */
@Timeout(60)
class HostileClientsTest extends TwoPools {
  private static final int MOST_THREADS = 64;
  private static final String NEARLY_FOREVER = "" + (1L << 62);

  /** The most heap that all clients together may make the seat hold. */
  private static final long MOST_HEAP_BYTES = 64 << 20;

  private final List<SocketChannel> channels = new ArrayList<>();
  private final AtomicLong sent = new AtomicLong();
  private long threadsBefore;
  private long heapBefore;

  @BeforeEach
  void measure() {
    threadsBefore = threads();
    heapBefore = heapBytes();
  }

  @AfterEach
  void closeChannels() throws IOException {
    for (SocketChannel channel : channels) {
      channel.close();
    }
  }

  /** Connects with the pid of this process, but without its secret. */
  private SocketChannel connect() throws IOException {
    SocketChannel channel =
        SocketChannel.open(UnixDomainSocketAddress.of(directory.resolve("seat.sock")));
    channels.add(channel);
    channel.write(Frames.hello("a guess"));
    assertThat(Frames.read(channel)).contains("settings.");
    return channel;
  }

  private static void write(SocketChannel channel, ByteBuffer frame) throws IOException {
    while (frame.hasRemaining()) {
      channel.write(frame);
    }
  }

  private static long threads() {
    return Thread.getAllStackTraces().keySet().stream()
        .filter(thread -> thread.getName().startsWith("vgpu-"))
        .count();
  }

  /** What clients make the seat hold at this moment is within the bounds for all of them. */
  private void assertHoldsLittle() {
    assertThat(threads() - threadsBefore).isLessThan(MOST_THREADS);
    assertThat(heapBytes() - heapBefore).isLessThan(MOST_HEAP_BYTES);
  }

  private static ByteBuffer suspend(String lease, int number) throws IOException {
    return Frames.of(
        "type", "suspend", "number", "" + number, "lease", lease, "timeoutNs", NEARLY_FOREVER);
  }

  @Test
  void requestsThatBlockTakeFewThreadsAndHoldUpNobody() throws Exception {
    VirtualGpu busy = holder.acquire(Pools.request(NEARLINE).build());
    GpuTurn turn = busy.enter(); // keeps it from being suspended
    for (int i = 0; i < 8; i++) {
      SocketChannel channel = connect();
      for (int j = 0; j < 250; j++) {
        write(channel, suspend(busy.id(), j + 2));
      }
    }
    assertHoldsLittle();
    assertThat(client.leases()).hasSize(1); // before one of the 2,000 can end
    VirtualGpu other = client.acquire(Pools.request(NEARLINE).build());
    other.suspend(Duration.ofSeconds(20));
    assertThat(isSuspended(other)).isTrue();
    other.resume(Duration.ofSeconds(20));
    assertThat(other.environment()).isNotEmpty();
    turn.close();
  }

  @Test
  void suspendsThatWaitForLongDoNotKeepTheSeatFromItsEnd() throws Exception {
    VirtualGpu busy = client.acquire(Pools.request(NEARLINE).build());
    GpuTurn turn = busy.enter(); // keeps it from being suspended
    for (int i = 0; i < 4; i++) {
      SocketChannel channel = connect();
      for (int j = 0; j < 4; j++) {
        write(channel, suspend(busy.id(), j + 2));
      }
    }
    Pools.await(() -> isSuspended(busy)); // is being suspended
    closeChannels();
    holder.close();
    turn.close();
    assertThat(busy.call(() -> 42)).isEqualTo(42);
  }

  private boolean isSuspended(VirtualGpu gpu) {
    return holder.leases().stream()
        .anyMatch(lease -> lease.id().equals(gpu.id()) && lease.isSuspended());
  }

  private static long heapBytes() {
    for (int i = 0; i < 3; i++) {
      System.gc(); // frees what is not held
    }
    return ManagementFactory.getMemoryMXBean().getHeapMemoryUsage().getUsed();
  }

  /** A request that blocks and holds as many values as a message may have. */
  private static ByteBuffer manyValues(String lease, int number) throws IOException {
    List<String> pairs =
        new ArrayList<>(
            List.of(
                "type",
                "suspend",
                "number",
                "" + number,
                "lease",
                lease,
                "timeoutNs",
                "30000000000"));
    for (int i = 0; i < 990; i++) {
      pairs.add(Integer.toString(i, Character.MAX_RADIX));
      pairs.add("");
    }
    return Frames.of(pairs.toArray(String[]::new));
  }

  @Test
  void listingsHoldNoLockAndNoThreadThatOthersNeed() throws Exception {
    VirtualGpu shown = holder.acquire(Pools.share(NEARLINE, 20));
    assertThat(shown.environment()).isNotEmpty();
    CountDownLatch begun = new CountDownLatch(1);
    CountDownLatch goesOn = new CountDownLatch(1);
    backend.leases.get(shown.id()).passedThrough =
        () -> {
          begun.countDown();
          await(goesOn);
          return 7;
        };
    for (int i = 0; i < 8; i++) {
      SocketChannel lists = connect();
      for (int j = 0; j < 40; j++) {
        write(lists, Frames.of("type", "leases", "number", "" + (j + 2)));
      }
    }
    begun.await();
    assertHoldsLittle();
    for (int i = 0; i < 50; i++) {
      try (VirtualGpu other = client.acquire(Pools.share(NEARLINE, 10))) {
        assertThat(other.call(() -> 42)).isEqualTo(42);
        other.resize(Pools.share(NEARLINE, 20));
        assertThat(other.usage().calls()).isEqualTo(1);
      }
    }
    goesOn.countDown();
    for (SocketChannel lists : channels) {
      for (int j = 0; j < 40; j++) {
        assertThat(Frames.read(lists)).contains(shown.id());
      }
    }
    assertThat(client.leases()).map(GpuLease::id).contains(shown.id());
  }

  @Test
  void heapThatClientsMakeTheSeatHoldIsBounded() throws Exception {
    VirtualGpu busy = holder.acquire(Pools.request(NEARLINE).build());
    GpuTurn turn = busy.enter(); // keeps it from being suspended
    ByteBuffer half = ByteBuffer.allocate(250 << 10).putInt(0, 256 << 10);
    int closed = 0;
    for (int i = 0; i < 40; i++) {
      try {
        SocketChannel channel = connect();
        for (int j = 0; j < 60; j++) {
          write(channel, manyValues(busy.id(), j + 2));
        }
        write(channel, half.duplicate());
      } catch (IOException e) {
        closed++; // by the seat, because it made the seat hold too much
      }
    }
    assertThat(client.leases()).isNotEmpty();
    System.out.println("hostile clients closed=" + closed);
    assertHoldsLittle();
    assertThat(client.acquire(Pools.request(NEARLINE).build()).environment()).isNotEmpty();
    turn.close();
  }

  /** Each of them delays another client's listing by one, however many it has sent. */
  @Test
  void floodOfOneIsAnsweredInTurnWithOthers() throws Exception {
    VirtualGpu shown = holder.acquire(Pools.share(NEARLINE, 20));
    assertThat(shown.environment()).isNotEmpty();
    CountDownLatch begun = new CountDownLatch(1);
    CountDownLatch goesOn = new CountDownLatch(1);
    AtomicLong listings = new AtomicLong();
    backend.leases.get(shown.id()).passedThrough =
        () -> {
          begun.countDown();
          await(goesOn);
          return listings.incrementAndGet();
        };
    Thread[] flooding = new Thread[8];
    for (int i = 0; i < flooding.length; i++) {
      SocketChannel channel = connect();
      flooding[i] = new Thread(() -> flood(channel));
      flooding[i].setDaemon(true);
      flooding[i].start();
    }
    begun.await();
    Pools.await(() -> sent.get() > flooding.length * 100L); // far more than are taken at a time
    SocketChannel other = connect();
    write(other, Frames.of("type", "leases", "number", "2"));
    write(other, Frames.of("type", "capabilities", "number", "3", "lease", "x"));
    assertThat(Frames.read(other)).contains("no such virtual GPU"); // so the listing is in its line
    assertHoldsLittle();
    goesOn.countDown();
    Matcher listed =
        Pattern.compile("unhandled..(\\d+)", Pattern.DOTALL).matcher(Frames.read(other));
    assertThat(listed.find()).isTrue();
    assertThat(Long.parseLong(listed.group(1))).isLessThanOrEqualTo(2L * flooding.length);
    assertHoldsLittle();
    closeChannels();
    for (Thread thread : flooding) {
      thread.join();
    }
    assertThat(client.acquire(Pools.request(NEARLINE).build()).id()).isNotEmpty();
  }

  private static void await(CountDownLatch latch) {
    try {
      latch.await();
    } catch (InterruptedException e) {
      throw new AssertionError(e);
    }
  }

  /** Sends requests without reading the answers. */
  private void flood(SocketChannel channel) {
    try {
      for (int i = 2; ; i++) {
        write(channel, Frames.of("type", "leases", "number", "" + i));
        sent.incrementAndGet();
      }
    } catch (IOException e) {
      assertThat(channel.isOpen()).isIn(true, false); // over, with or without a close by the seat
    }
  }

  @Test
  void numberAndStartOfTheOwnerDoNotMakeTheOwner() throws Exception {
    VirtualGpu gpu = client.acquire(Pools.share(ONLINE, 30));
    SocketChannel other = connect(); // claims to be the same process
    write(
        other,
        Frames.of(
            "type", "claim", "number", "2", "lease", gpu.id(), "turn", "0", "runs", "false",
            "waits", "false"));
    assertThat(Frames.read(other)).contains("is another process's");
    write(other, Frames.of("type", "claimed"));
    Message values = new Message("any").with("request.", RequestValues.of(gpu.request()));
    LeaseValues.put(values, "usage.", UsageReading.NONE);
    for (String request : List.of("resize", "environment", "used", "capabilities")) {
      List<String> pairs = new ArrayList<>(List.of("type", request, "number", "3"));
      pairs.addAll(List.of("lease", gpu.id()));
      values
          .under("")
          .forEach(
              (name, value) ->
                  pairs.addAll(name.equals("type") ? List.of() : List.of(name, value)));
      write(other, Frames.of(pairs.toArray(new String[0])));
      assertThat(Frames.read(other)).contains("no such virtual GPU of this process");
    }
    write(other, Frames.of("type", "close", "lease", gpu.id()));
    write(other, Frames.of("type", "leases", "number", "4"));
    assertThat(Frames.read(other)).contains(gpu.id());
    assertThat(gpu.request().computePercent()).hasValue(30);
    gpu.resize(gpu.request().toBuilder().computePercent(20).build());
  }

  @Test
  void recordOnDiskTellsNoSecretAndItsOwnerComesBack() throws Exception {
    VirtualGpu gpu = client.acquire(Pools.share(ONLINE, 30));
    String record =
        Files.readString(directory.resolve("leases").resolve(gpu.id()).resolve("lease.properties"));
    assertThat(record).containsPattern("owner.key=[0-9a-f]{64}\\R");
    holder.close();
    Pools.await(() -> client.leases().size() == 1);
    assertThat(gpu.call(() -> 42)).isEqualTo(42);
    holder = open();
    VirtualGpu second = holder.acquire(Pools.share(ONLINE, 30));
    SocketChannel other = connect();
    write(other, Frames.of("type", "claimed"));
    write(other, Frames.of("type", "leases", "number", "4"));
    assertThat(Frames.read(other)).contains(gpu.id()).contains(second.id());
  }

  @Test
  void leasesOfOneClientAreBoundedAndAllAreListed() throws Exception {
    SocketChannel channel = connect();
    assertThat(ask(channel, "acquire")).contains("too many virtual GPUs in one process");
    assertThat(client.leases()).hasSize(LeaseGrants.MOST_LEASES / 2);
    assertHoldsLittle();
  }

  /**
   * Whoever is refused in a loop would otherwise make the seat send hundreds of leases each time.
   */
  @Test
  void refusalNamesFewOfManyHolders() throws Exception {
    ask(connect(), "acquire");
    VirtualGpu all = holder.acquire(Pools.share(ONLINE, 100));
    assertThat(refusal().holders()).hasSize(8);
    FutureTask<Void> refused =
        new FutureTask<>(
            () -> {
              for (int i = 0; i < 500; i++) {
                refusal();
              }
              return null;
            });
    new Thread(refused).start();
    for (int i = 0; i < 20; i++) {
      assertThat(client.states()).hasSize(1);
    }
    refused.get();
    assertThat(all.isClosed()).isFalse();
    assertHoldsLittle();
  }

  private GpuCapacityException refusal() {
    return catchThrowableOfType(
        GpuCapacityException.class, () -> client.acquire(Pools.share(NEARLINE, 10)));
  }

  /** A client may claim leases that are not on disk, since it may know more than the disk. */
  @Test
  void claimsAreBoundedAsRequestsAre() throws Exception {
    assertThat(ask(connect(), "claim")).contains("too many virtual GPUs in one process");
    assertThat(client.leases()).hasSize(LeaseGrants.MOST_LEASES / 2);
    ask(connect(), "claim");
    assertThat(ask(connect(), "claim")).contains("too many virtual GPUs on this node");
    assertThat(client.leases()).hasSize(LeaseGrants.MOST_LEASES);
    assertHoldsLittle();
  }

  /** Acquires or claims virtual GPUs until that is refused, and returns the refusal. */
  private String ask(SocketChannel channel, String what) throws IOException {
    String answer = "";
    for (int i = 0; !answer.contains("too many"); i++) {
      assertThat(i).as(answer).isLessThanOrEqualTo(LeaseGrants.MOST_LEASES);
      String lease = "any-" + channels.size() + i;
      write(channel, Frames.wanting(what, i + 2, lease, gpus.get(0).id().value()));
      answer = Frames.read(channel);
    }
    return answer;
  }

  @Test
  void programThatIsNamedAThousandTimesIsKeptOnce() throws Exception {
    SocketChannel channel = connect();
    write(channel, Frames.wanting("acquire", 2, "", gpus.get(0).id().value()));
    assertThat(Frames.read(channel)).contains("reply");
    String id = client.leases().get(0).id();
    ProcessIdentity self = ProcessIdentity.current();
    for (int i = 0; i < 1_000; i++) {
      write(
          channel,
          Frames.of(
              "type", "started", "lease", id, "pid", "" + self.pid(), "start", "" + self.start()));
    }
    write(channel, Frames.of("type", "leases", "number", "3"));
    assertThat(Frames.read(channel)).contains(id);
    Path record = directory.resolve("leases").resolve(id).resolve("lease.properties");
    assertThat(Files.readAllLines(record))
        .contains("programs=" + self.pid() + "\\:" + self.start());
  }

  @Test
  void eventThatIsABookIsNotKept() throws Exception {
    SocketChannel channel = connect();
    for (int i = 0; i < 5_000; i++) {
      write(
          channel,
          Frames.of("type", "event", "kind", "Leaked", "at", "2026-01-01T00:00:00Z", "gpu", "x-1"));
    }
    write(
        channel,
        Frames.of(
            "type",
            "event",
            "kind",
            "CancelFailed",
            "at",
            "2026-01-01T00:00:00Z",
            "gpu",
            "x-1",
            "reason",
            "y".repeat(10_000)));
    write(channel, Frames.of("type", "leases", "number", "2"));
    assertThat(Frames.read(channel)).contains("reply");
    assertThat(client.recentEvents().toString()).contains("Leaked").doesNotContain("yyy");
    assertHoldsLittle();
  }

  @Test
  void openingAndClosingLeavesNoThreads() throws Exception {
    long before = threads();
    for (int i = 0; i < 100; i++) {
      GpuPool pool = open();
      assertThat(pool.leases()).isEmpty();
      pool.close();
    }
    long startNs = NanoClock.SYSTEM.nanoTime();
    Pools.await(() -> threads() <= before + 4);
    System.out.println(
        "100 pools opened and closed: threads gone after ms="
            + (NanoClock.SYSTEM.nanoTime() - startNs) / 1_000_000);
  }

  @Test
  void seatThatCannotBeginLeavesNoThreadsAndNoBackends() throws Exception {
    Path other = Files.createDirectory(directory.resolve("other"));
    Files.setPosixFilePermissions(other, PosixFilePermissions.fromString("rwx------"));
    Path obstacle = Files.createDirectories(other.resolve("seat.sock").resolve("full"));
    long before = threads();
    backend.leftovers = true;
    for (int i = 0; i < 20; i++) {
      assertThatThrownBy(() -> open(other))
          .isInstanceOf(VgpuException.class)
          .hasMessageContaining("the seat's socket cannot be made: path=" + obstacle.getParent());
    }
    assertThat(backend.opened).isEqualTo(20);
    assertThat(backend.closed).isEqualTo(20);
    Pools.await(() -> threads() <= before + 4);
    Files.delete(obstacle);
    Files.delete(obstacle.getParent());
    try (GpuPool pool = open(other)) {
      assertThat(pool.leases()).isEmpty();
    }
  }
}
