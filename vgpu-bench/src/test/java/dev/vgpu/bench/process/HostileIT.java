package dev.vgpu.bench.process;

import static org.assertj.core.api.Assertions.assertThat;

import dev.vgpu.bench.harness.Child;
import dev.vgpu.bench.harness.NanoClock;
import dev.vgpu.bench.harness.Node;
import dev.vgpu.bench.harness.PoolProcess;
import dev.vgpu.testing.TestSeed;
import java.io.IOException;
import java.io.RandomAccessFile;
import java.net.StandardProtocolFamily;
import java.net.UnixDomainSocketAddress;
import java.nio.ByteBuffer;
import java.nio.channels.SocketChannel;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Random;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;

/** A hostile tenant harms only itself. */
class HostileIT {
  private Node node;
  private PoolProcess pool;
  private Map<String, String> honest;
  private Map<String, String> hostile;
  private List<Child> others;

  @BeforeEach
  void open() throws Exception {
    node = Node.open(Map.of());
    pool = node.openPool();
    honest = Tenants.burst(pool, "honest", 40);
    hostile = Tenants.bestEffort(pool, "hostile");
    others = List.of(Tenants.load(node, honest).awaitReady());
  }

  @AfterEach
  void close() {
    System.err.print(node.errors());
    node.close();
  }

  private void assertOthersGoOn() throws Exception {
    Tenants.assertAllGoOn(others);
    assertThat(pool.leases()).hasSize(2);
    Child another = Tenants.load(node, honest).awaitReady();
    Tenants.assertAllGoOn(List.of(another));
    another.kill();
  }

  @Test
  void randomBytesInItsOwnReportPageHarmNobodyElse() throws Exception {
    for (int i = 0; i < 3; i++) {
      Child program = node.start(hostile, "hostile", "2");
      // After writing to its page, its own virtual GPU may have no room for another process.
      assertThat(program.line()).matches("ready|error cuInit .*");
      for (int round = 0; round < 5; round++) {
        Tenants.assertAllGoOn(others);
        assertThat(pool.leases()).hasSize(2);
        NanoClock.sleepMillis(200);
      }
      program.kill();
    }
    assertOthersGoOn();
    long held = Tenants.lease(pool, "honest").path("memory").asLong();
    assertThat(held).isPositive().isLessThan(Tenants.QUOTA.bytes());
  }

  @Test
  void reportPageThatItCutsOffHarmsNobodyElse() throws Exception {
    Child program = node.start(hostile, "truncate");
    program.awaitReady();
    NanoClock.sleepMillis(500);
    assertOthersGoOn();
    program.kill();
    assertOthersGoOn();
    // A program that starts later gets an error, and does not hang.
    Child late = node.start(hostile, "init");
    assertThat(late.line()).startsWith("error cuInit");
    assertThat(late.awaitEnd()).isEqualTo(1);
  }

  @Test
  void reportPageThatIsCutOffBeforeTheFirstProgramRefusesIt() throws Exception {
    Path report =
        node.runDirectory().resolve("leases").resolve(hostile.get("VGPU_LEASE")).resolve("report");
    try (RandomAccessFile file = new RandomAccessFile(report.toFile(), "rw")) {
      file.setLength(100);
    }
    Child program = node.start(hostile, "init");
    assertThat(program.line()).startsWith("error cuInit");
    assertThat(program.awaitEnd()).isEqualTo(1);
    assertOthersGoOn();
  }

  @Test
  void floodedSocketsServeOthersAllTheSame() throws Exception {
    List<SocketChannel> channels = new ArrayList<>();
    Random random = TestSeed.random();
    for (String name : List.of("hook.sock", "seat.sock")) {
      for (int i = 0; i < 200; i++) {
        flood(node.runDirectory().resolve(name), random, channels);
        if (i % 50 == 0) {
          Tenants.assertAllGoOn(others);
        }
      }
    }
    assertOthersGoOn();
    for (SocketChannel channel : channels) {
      channel.close();
    }
    assertOthersGoOn();
  }

  /** Floods the socket; whether the seat hangs up does not matter. */
  private static void flood(Path socket, Random random, List<SocketChannel> channels)
      throws IOException {
    SocketChannel channel = SocketChannel.open(StandardProtocolFamily.UNIX);
    channels.add(channel);
    try {
      channel.connect(UnixDomainSocketAddress.of(socket));
      channel.configureBlocking(false);
      byte[] bytes = new byte[1 + random.nextInt(4_000)];
      random.nextBytes(bytes);
      for (int i = 0; i < 10; i++) {
        channel.write(ByteBuffer.wrap(bytes));
      }
    } catch (IOException e) {
      channel.close();
    }
  }
}
