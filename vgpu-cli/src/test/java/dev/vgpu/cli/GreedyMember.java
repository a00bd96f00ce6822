package dev.vgpu.cli;

import static java.nio.charset.StandardCharsets.UTF_8;

import dev.vgpu.GpuPool;
import dev.vgpu.MemorySize;
import dev.vgpu.VirtualGpuRequest;
import java.io.ByteArrayOutputStream;
import java.io.DataOutputStream;
import java.io.IOException;
import java.net.UnixDomainSocketAddress;
import java.nio.ByteBuffer;
import java.nio.channels.SocketChannel;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CountDownLatch;

/** A member that wants all connections and all leases, and keeps them until it is killed. */
final class GreedyMember {
  private static final int WANTED = 300;
  private static final List<Object> kept = new ArrayList<>();

  private GreedyMember() {}

  public static void main(String[] arguments) throws Exception {
    Path socket = Path.of(System.getenv("VGPU_RUN_DIR"), "seat.sock");
    String refusal = "";
    while (refusal.isEmpty() && kept.size() < WANTED) {
      String answer = hello(socket);
      refusal = answer.contains("too many") ? answer : "";
    }
    System.out.println("connections: " + kept.size() + " " + refusal);
    kept.forEach(GreedyMember::close);
    kept.clear();
    GpuPool pool = GpuPool.open();
    try {
      while (kept.size() < WANTED) {
        kept.add(
            pool.acquire(
                VirtualGpuRequest.builder()
                    .name("greedy")
                    .bestEffort()
                    .memory(MemorySize.ofMebibytes(1))
                    .build()));
      }
    } catch (RuntimeException e) {
      System.out.println("leases: " + kept.size() + " " + e.getMessage());
    }
    System.out.println("done");
    new CountDownLatch(1).await();
  }

  private static void close(Object each) {
    try {
      ((SocketChannel) each).close();
    } catch (IOException e) {
      throw new java.io.UncheckedIOException(e);
    }
  }

  /** Says hello on a connection that stays open, and returns the answer. */
  private static String hello(Path socket) throws IOException {
    ByteArrayOutputStream pairs = new ByteArrayOutputStream();
    DataOutputStream out = new DataOutputStream(pairs);
    List<String> values =
        List.of("type", "hello", "version", "2", "pid", "1", "start", "1", "number", "1");
    out.writeShort(values.size() / 2 + 1);
    for (String value : values) {
      out.writeUTF(value);
    }
    out.writeUTF("secret");
    out.writeUTF("secret");
    SocketChannel channel = SocketChannel.open(UnixDomainSocketAddress.of(socket));
    kept.add(channel);
    ByteBuffer frame = ByteBuffer.allocate(Integer.BYTES + pairs.size());
    frame.putInt(pairs.size()).put(pairs.toByteArray()).flip();
    channel.write(frame);
    ByteBuffer answer = ByteBuffer.allocate(1 << 16);
    int read = channel.read(answer);
    return new String(answer.array(), 0, Math.max(0, read), UTF_8);
  }
}
