package dev.vgpu.core.seat;

import static org.assertj.core.api.Assertions.assertThat;

import dev.vgpu.GpuPoolOptions;
import dev.vgpu.core.NanoClock;
import dev.vgpu.core.book.PoolSettings;
import dev.vgpu.core.node.Node;
import dev.vgpu.core.pool.FakeBackend;
import dev.vgpu.core.wire.LinkLoop;
import dev.vgpu.spi.Enforcement;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicLong;
import java.util.concurrent.locks.LockSupport;
import java.util.function.LongSupplier;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;

/** When the seat is given up because its holder does not serve. */
@Timeout(60)
class SeatWatchTest {
  private static final long MILLI_NS = 1_000_000;
  private static final int MOST_LOOKS = 400;
  @TempDir private Path directory;

  /** {@return the number of looks until the seat was given up} */
  private static int looksOfASeatThatHangs(LongSupplier waitedNs) throws Exception {
    Node node =
        new Node(PoolSettings.from(GpuPoolOptions.defaults()), NanoClock.SYSTEM, ended -> {});
    CountDownLatch goesOn = new CountDownLatch(1);
    CompletableFuture<String> givenUp = new CompletableFuture<>();
    AtomicInteger looks = new AtomicInteger();
    try (LinkLoop loop = new LinkLoop(NanoClock.SYSTEM)) {
      loop.perform(
          () -> {
            try {
              goesOn.await();
            } catch (InterruptedException e) {
              throw new AssertionError(e);
            }
          });
      SeatWatch watch =
          SeatWatch.start(
              node,
              loop,
              List::of,
              givenUp::complete,
              () -> {
                looks.incrementAndGet();
                return waitedNs.getAsLong();
              });
      try {
        assertThat(givenUp.get(50, TimeUnit.SECONDS)).contains("have not been served for");
      } finally {
        watch.close();
        goesOn.countDown();
      }
    }
    return looks.get();
  }

  @Test
  void oneOfWhichABackendHangsIsGivenUpSoon() throws Exception {
    Node node =
        new Node(PoolSettings.from(GpuPoolOptions.defaults()), NanoClock.SYSTEM, ended -> {});
    FakeBackend backend = new FakeBackend();
    List<Enforcement> atWork = List.of(backend.open(directory));
    AtomicInteger looks = new AtomicInteger();
    CompletableFuture<String> givenUp = new CompletableFuture<>();
    try (LinkLoop loop = new LinkLoop(NanoClock.SYSTEM)) {
      SeatWatch watch =
          SeatWatch.start(
              node,
              loop,
              () -> atWork,
              givenUp::complete,
              () -> {
                looks.incrementAndGet();
                return 0;
              });
      try {
        backend.asked.acquire(3); // it is asked again after it has answered
        backend.hangs = true;
        assertThat(givenUp.get(50, TimeUnit.SECONDS)).contains("have not been served for");
      } finally {
        watch.close();
      }
    }
    assertThat(looks.get()).isEqualTo(4);
  }

  @Test
  void threadThatSleepsIsNotWoken() throws Exception {
    Node node =
        new Node(PoolSettings.from(GpuPoolOptions.defaults()), NanoClock.SYSTEM, ended -> {});
    FakeBackend backend = new FakeBackend();
    List<Enforcement> atWork = List.of(backend.open(directory));
    AtomicInteger rounds = new AtomicInteger();
    CompletableFuture<String> givenUp = new CompletableFuture<>();
    try (LinkLoop loop = new LinkLoop(NanoClock.SYSTEM)) {
      loop.ticker(
          nowNs -> {
            rounds.incrementAndGet();
            return Long.MAX_VALUE;
          });
      while (rounds.get() == 0 || !loop.isAsleep()) {
        LockSupport.parkNanos(MILLI_NS);
      }
      int before = rounds.get();
      SeatWatch watch = SeatWatch.start(node, loop, () -> atWork, givenUp::complete, () -> 0);
      backend.asked.acquire(8);
      watch.close();
      // The call of ticker() may have caused some.
      assertThat(rounds.get() - before).isLessThan(4);
      assertThat(givenUp).isNotDone();
    }
  }

  @Test
  void oneThatHangsIsGivenUpSoon() throws Exception {
    assertThat(looksOfASeatThatHangs(() -> 0)).isEqualTo(4);
  }

  /** A process has many threads, and a look at all of them takes longer than the pause. */
  @Test
  void oneThatHangsIsGivenUpThoughLooksTakeLong() throws Exception {
    LongSupplier slow =
        () -> {
          LockSupport.parkNanos(60 * MILLI_NS);
          return 0;
        };
    assertThat(looksOfASeatThatHangs(slow)).isEqualTo(4);
  }

  @Test
  void oneThatIsLateIsGivenMoreTime() throws Exception {
    // Looks that are late themselves count, too.
    assertThat(looksOfASeatThatHangs(() -> 40 * MILLI_NS)).isBetween(5, 100);
  }

  @Test
  void waitsForAProcessorAreSeen() throws Exception {
    ProcessorWaits waits = new ProcessorWaits(NanoClock.SYSTEM::nanoTime);
    AtomicBoolean ends = new AtomicBoolean();
    for (int i = 0; i < 2 + 2 * Runtime.getRuntime().availableProcessors(); i++) {
      Thread busy =
          new Thread(
              () -> {
                while (!ends.get()) {
                  Thread.onSpinWait();
                }
              });
      busy.setDaemon(true);
      busy.start();
    }
    try {
      waits.mostSinceLastNs();
      long most = 0;
      for (int look = 0; look < MOST_LOOKS && most < ProcessorWaits.MOST_WAITED_NS; look++) {
        LockSupport.parkNanos(50 * MILLI_NS);
        most = waits.mostSinceLastNs();
      }
      assertThat(most).isGreaterThanOrEqualTo(ProcessorWaits.MOST_WAITED_NS);
    } finally {
      ends.set(true);
    }
  }

  @Test
  void waitThatGoesOnIsSeenBeforeTheKernelCountsIt() throws Exception {
    AtomicLong nowNs = new AtomicLong();
    Path task = Files.createDirectories(directory.resolve("7"));
    Files.writeString(task.resolve("schedstat"), "900 400 3\n");
    Files.writeString(task.resolve("stat"), "7 (a) name) R 1 7\n");
    ProcessorWaits waits = new ProcessorWaits(directory, nowNs::get);
    waits.mostSinceLastNs();
    nowNs.addAndGet(50 * MILLI_NS);
    assertThat(waits.mostSinceLastNs()).isEqualTo(50 * MILLI_NS);
    nowNs.addAndGet(50 * MILLI_NS);
    Files.writeString(task.resolve("schedstat"), "950 490 4\n");
    assertThat(waits.mostSinceLastNs()).as("it has run").isEqualTo(90);
    nowNs.addAndGet(50 * MILLI_NS);
    Files.writeString(task.resolve("stat"), "7 (a) name) S 1 7\n");
    assertThat(waits.mostSinceLastNs()).as("it waits for something else").isZero();
    Files.writeString(task.resolve("schedstat"), "0 0 0\n");
    Files.writeString(task.resolve("stat"), "7 (a) name) R 1 7\n");
    for (int look = 0; look < 2; look++) {
      nowNs.addAndGet(50 * MILLI_NS);
      assertThat(waits.mostSinceLastNs()).as("the kernel does not count").isNotPositive();
    }
  }

  @Test
  void oneThatHangsIsGivenUpAlsoIfItIsNotKnownWhoWaitsForAProcessor() throws Exception {
    assertThat(
            looksOfASeatThatHangs(
                () -> {
                  throw new IllegalStateException("as a test wants it");
                }))
        .isEqualTo(4);
  }

  @Test
  void whatNoThreadCanBeStartedForIsDoneByTheOneThatAsks() {
    AtomicBoolean done = new AtomicBoolean();
    Thread made =
        ProcessorWaits.started(
            work ->
                new Thread(work) {
                  @Override
                  public synchronized void start() {
                    throw new OutOfMemoryError("as a test wants it");
                  }
                },
            () -> done.set(true));
    assertThat(done).isTrue();
    assertThat(made.isAlive()).isFalse();
  }
}
