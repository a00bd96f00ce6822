package dev.vgpu.cli;

import dev.vgpu.GpuPool;
import dev.vgpu.request.MemorySize;
import dev.vgpu.request.VirtualGpuRequest;
import dev.vgpu.testing.Frames;
import java.io.IOException;
import java.net.UnixDomainSocketAddress;
import java.nio.ByteBuffer;
import java.nio.channels.SocketChannel;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CountDownLatch;

/**
 * A member that wants more than is its own. It claims the lease that its arguments name, with its
 * GPU. If a process is named instead, it says that it is that one, and then acquires a lease and
 * says that the process is a program under it. Without arguments, it takes all connections and
 * leases that it gets, until it is killed.
 */
final class GreedyMember {
  private static final String[] HELLO = {
    "type", "hello", "version", "2", "number", "1", "pid", "1", "start", "1", "secret", "secret"
  };
  private static final int WANTED = 300;
  private static final List<Object> kept = new ArrayList<>();

  private GreedyMember() {}

  public static void main(String[] arguments) throws Exception {
    Path socket = Path.of(System.getenv("VGPU_RUN_DIR"), "seat.sock");
    if (arguments.length > 0 && arguments[0].equals("pid")) {
      pin(socket, arguments[1], arguments[2], arguments[3]);
      return;
    }
    if (arguments.length > 0) {
      try (SocketChannel channel = SocketChannel.open(UnixDomainSocketAddress.of(socket))) {
        String welcome = ask(channel, Frames.of(HELLO));
        String claimed = ask(channel, Frames.wanting("claim", 2, arguments[0], arguments[1]));
        System.out.println(welcome + claimed);
      }
      return;
    }
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

  private static void pin(Path socket, String pid, String start, String gpu) throws IOException {
    String[] named = HELLO.clone();
    named[7] = pid;
    named[9] = start;
    try (SocketChannel channel = SocketChannel.open(UnixDomainSocketAddress.of(socket))) {
      System.out.println("hello: " + ask(channel, Frames.of(named)));
    }
    try (SocketChannel channel = SocketChannel.open(UnixDomainSocketAddress.of(socket))) {
      String welcome = ask(channel, Frames.of(HELLO));
      String granted = ask(channel, Frames.wanting("acquire", 2, "", gpu));
      String id = granted.replaceAll("(?s).*?(any-[0-9-]+).*", "$1");
      channel.write(Frames.of("type", "started", "lease", id, "pid", pid, "start", start));
      String listed = ask(channel, Frames.of("type", "leases", "number", "3"));
      System.out.println("acquired: " + id + " " + listed.contains(id) + welcome.isEmpty());
    }
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
    SocketChannel channel = SocketChannel.open(UnixDomainSocketAddress.of(socket));
    kept.add(channel);
    return ask(channel, Frames.of(HELLO));
  }

  private static String ask(SocketChannel channel, ByteBuffer frame) throws IOException {
    while (frame.hasRemaining()) {
      channel.write(frame);
    }
    return Frames.read(channel);
  }
}
