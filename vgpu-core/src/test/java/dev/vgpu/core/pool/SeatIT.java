package dev.vgpu.core.pool;

import static org.assertj.core.api.Assertions.assertThat;

import dev.vgpu.core.disk.ProcessIdentity;
import dev.vgpu.core.pool.SeatProcesses.Child;
import dev.vgpu.testing.Frames;
import dev.vgpu.testing.TestSeed;
import java.io.IOException;
import java.net.UnixDomainSocketAddress;
import java.nio.ByteBuffer;
import java.nio.channels.SocketChannel;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Locale;
import java.util.Random;
import java.util.Set;
import java.util.concurrent.locks.LockSupport;
import org.junit.jupiter.api.Test;

/** Several processes in one run directory, and their failures. */
class SeatIT {
  @Test
  void ofRacingProcessesExactlyOneHasTheSeat() throws Exception {
    try (SeatProcesses node = new SeatProcesses()) {
      List<Child> racing = new ArrayList<>();
      for (int i = 0; i < 5; i++) {
        racing.add(node.begin());
      }
      Set<String> ids = new HashSet<>();
      for (Child child : racing) {
        assertThat(child.read()).isEqualTo("ready");
        ids.add(child.ask("acquire model 20"));
      }
      assertThat(ids).hasSize(5);
      for (Child child : racing) {
        assertThat(child.ask("leases").split(" ")).containsExactlyInAnyOrderElementsOf(ids);
      }
      assertThat(node.holder().process.isAlive()).isTrue();
    }
  }

  @Test
  void killedClientGivesBackAtOnce() throws Exception {
    try (SeatProcesses node = new SeatProcesses()) {
      Child holder = node.start();
      for (int i = 0; i < 3; i++) {
        Child client = node.start();
        String id = client.ask("acquire big 80");
        assertThat(client.ask("work " + id + " 500")).isEqualTo("working");
        holder.send("acquire waits 80");
        client.kill();
        String waited = holder.read();
        assertThat(waited).startsWith("waits-");
        assertThat(holder.ask("leases")).isEqualTo(waited);
        assertThat(node.lease(id)).doesNotExist();
        assertThat(holder.ask("close " + waited)).isEqualTo("closed");
      }
    }
  }

  @Test
  void floodAndGarbageHarmNobodyElse() throws Exception {
    Random random = TestSeed.random();
    try (SeatProcesses node = new SeatProcesses()) {
      Child holder = node.start();
      Child client = node.start();
      String id = client.ask("acquire model 50");
      assertThat(client.ask("work " + id + " 100")).isEqualTo("working");
      List<SocketChannel> hostile = new ArrayList<>();
      for (int i = 0; i < 1_000; i++) {
        SocketChannel channel = connect(node);
        if (channel != null) {
          hostile.add(channel);
          send(channel, garbage(random, i % 5));
        }
      }
      long before = client.number("calls " + id);
      while (client.number("calls " + id) < before + 10) {
        LockSupport.parkNanos(1_000_000);
      }
      assertThat(client.ask("failure " + id)).isEmpty();
      Child late = node.start();
      assertThat(late.ask("leases")).isEqualTo(id);
      assertThat(holder.ask("leases")).isEqualTo(id);
      for (SocketChannel channel : hostile) {
        channel.close();
      }
    }
  }

  @Test
  void halfSentFramesDoNotFillTheHoldersHeap() throws Exception {
    try (SeatProcesses node = new SeatProcesses()) {
      Child holder = node.start(); // its heap is limited to 128 MiB
      Child client = node.start();
      String id = client.ask("acquire model 50");
      List<SocketChannel> hostile = new ArrayList<>();
      for (int i = 0; i < 500; i++) {
        SocketChannel channel = connect(node);
        if (channel != null) {
          hostile.add(channel);
          send(channel, Frames.hello("x").array());
          assertThat(Frames.read(channel)).contains("settings.");
          send(channel, ByteBuffer.allocate(255 << 10).putInt(256 << 10).array());
        }
      }
      assertThat(client.ask("leases")).isEqualTo(id);
      assertThat(holder.ask("leases")).isEqualTo(id);
      assertThat(node.start().ask("leases")).isEqualTo(id);
      assertThat(node.holder()).isSameAs(holder);
      for (SocketChannel channel : hostile) {
        channel.close();
      }
    }
  }

  private static SocketChannel connect(SeatProcesses node) {
    try {
      return SocketChannel.open(UnixDomainSocketAddress.of(node.directory.resolve("seat.sock")));
    } catch (IOException e) {
      return null; // refused
    }
  }

  private static void send(SocketChannel channel, byte[] bytes) {
    try {
      channel.write(ByteBuffer.wrap(bytes));
    } catch (IOException e) {
      // The connection was closed already, as expected.
    }
  }

  private static byte[] garbage(Random random, int kind) {
    byte[] noise = new byte[200];
    random.nextBytes(noise);
    return switch (kind) {
      case 0 -> new byte[0];
      case 1 -> noise;
      case 2 -> ByteBuffer.allocate(4).putInt(Integer.MAX_VALUE).array();
      case 3 -> ByteBuffer.allocate(204).putInt(1_000).put(noise).array(); // half a frame
      default -> ByteBuffer.allocate(204).putInt(200).put(noise).array();
    };
  }

  @Test
  void leasesThatMakeNoSenseAreSetAside() throws Exception {
    try (SeatProcesses node = new SeatProcesses()) {
      String good = properties("good-9", node.gpu(), new ProcessIdentity(1, 1));
      write(node, "random-1", randomBytes(4_000));
      write(node, "half-2", good.substring(0, good.length() / 2));
      write(node, "other-3", good);
      write(node, "empty-4", "");
      write(node, "escape-5", "id=\\u12zz\n");
      write(node, "huge-6", "x".repeat(1 << 20));
      write(node, "negative-7", good.replace("good-9", "negative-7").replace("=1000", "=-1000"));
      Files.createDirectories(node.lease("directory-8").resolve("lease.properties"));
      Files.createDirectories(node.lease("not a lease"));
      Child child = node.start();
      assertThat(child.ask("leases")).isEmpty();
      String id = child.ask("acquire model 100");
      assertThat(id).startsWith("model-");
      assertThat(node.lease("random-1").resolve("lease.properties.bad")).exists();
      assertThat(node.lease("not a lease")).exists();
    }
  }

  private static String randomBytes(int count) {
    byte[] bytes = new byte[count];
    TestSeed.random().nextBytes(bytes);
    return new String(bytes, StandardCharsets.ISO_8859_1);
  }

  private static void write(SeatProcesses node, String id, String text) throws IOException {
    Path own = Files.createDirectories(node.lease(id));
    Files.writeString(own.resolve("lease.properties"), text, StandardCharsets.ISO_8859_1);
  }

  private static String properties(String id, String gpu, ProcessIdentity owner) {
    return String.format(
        Locale.ROOT,
        "id=%s%ngpu=%s%nowner.pid=%d%nowner.start=%d%nprograms=%nrequest.name=good%n"
            + "request.memory=1000%nrequest.policy=BURST_SHARE%nrequest.percent=80%n"
            + "request.class=NEARLINE%nrequest.calls=1%nrequest.failure=REFUSE%n"
            + "request.requires.memory=NONE%nrequest.requires.compute=NONE%n"
            + "request.requires.preemption=NONE%nrequest.requires.isolation=NONE%n"
            + "request.requires.worksFor=%n",
        id,
        gpu,
        owner.pid(),
        owner.start());
  }

  @Test
  void numberOfADeadOwnerThatAnotherProcessHasIsNotItsOwner() throws Exception {
    try (SeatProcesses node = new SeatProcesses()) {
      ProcessIdentity self = ProcessIdentity.current();
      ProcessIdentity before = new ProcessIdentity(self.pid(), self.start() - 1);
      write(node, "reused-1", properties("reused-1", node.gpu(), before));
      write(node, "living-2", properties("living-2", node.gpu(), self));
      Child child = node.start();
      String leases;
      do {
        LockSupport.parkNanos(1_000_000);
        leases = child.ask("leases");
      } while (leases.contains("reused-1"));
      // Granted once the seat stops waiting for the owner of living-2.
      String id = child.ask("acquire model 80");
      assertThat(id).startsWith("model-");
      assertThat(child.ask("leases")).isEqualTo(id);
    }
  }

  @Test
  void stoppedProcessHoldsNobodyUp() throws Exception {
    try (SeatProcesses node = new SeatProcesses()) {
      Child holder = node.start();
      Child client = node.start();
      String here = holder.ask("acquire here 30");
      String there = client.ask("acquire there 30");
      assertThat(holder.ask("work " + here + " 300")).isEqualTo("working");
      assertThat(client.ask("work " + there + " 300")).isEqualTo("working");
      for (int i = 0; i < 5; i++) {
        stopAndGoOn(client, holder, here);
        stopAndGoOn(holder, client, there);
      }
      assertThat(holder.ask("failure " + here)).isEmpty();
      assertThat(client.ask("failure " + there)).isEmpty();
    }
  }

  private static void stopAndGoOn(Child stopped, Child goesOn, String id) throws Exception {
    String ignored = goesOn.ask("worst " + id);
    signal("STOP", stopped);
    long before = goesOn.number("calls " + id);
    while (goesOn.number("calls " + id) < before + 20) {
      LockSupport.parkNanos(1_000_000);
    }
    System.out.println(
        "stopped "
            + (ignored.isEmpty() ? "" : "another")
            + ": worst ms="
            + goesOn.ask("worst " + id));
    signal("CONT", stopped);
  }

  private static void signal(String name, Child child) throws Exception {
    Process kill =
        new ProcessBuilder("sh", "-c", "kill -" + name + " " + child.process.pid()).start();
    assertThat(kill.waitFor()).isZero();
  }
}
