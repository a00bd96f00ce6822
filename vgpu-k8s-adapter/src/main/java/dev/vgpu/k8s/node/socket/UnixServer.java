package dev.vgpu.k8s.node.socket;

import io.grpc.BindableService;
import io.grpc.Server;
import io.grpc.netty.NettyServerBuilder;
import io.netty.channel.EventLoopGroup;
import io.netty.channel.MultiThreadIoEventLoopGroup;
import io.netty.channel.nio.NioIoHandler;
import io.netty.channel.socket.nio.NioServerDomainSocketChannel;
import java.io.IOException;
import java.net.UnixDomainSocketAddress;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;

/** gRPC services on a Unix socket. Safe for use by several threads. */
public final class UnixServer implements AutoCloseable {
  private static final int LONGEST_PATH = 100;

  private final Path socket;
  private final Server server;

  private UnixServer(Path socket, Server server) {
    this.socket = socket;
    this.server = server;
  }

  /**
   * {@return a running server}
   *
   * @param socket its path; a socket left by a dead process is replaced
   * @param threads runs the services, and moves the bytes
   * @param services the services
   * @throws IOException if it cannot listen there
   */
  public static UnixServer open(Path socket, Threads threads, BindableService... services)
      throws IOException {
    if (socket.toString().length() > LONGEST_PATH) {
      throw new IOException(
          "a Unix socket's path may have "
              + LONGEST_PATH
              + " bytes; choose a shorter one: "
              + socket);
    }
    Path parent = socket.toAbsolutePath().getParent();
    if (parent != null) {
      Files.createDirectories(parent);
    }
    Files.deleteIfExists(socket);
    NettyServerBuilder builder =
        NettyServerBuilder.forAddress(UnixDomainSocketAddress.of(socket))
            .channelType(NioServerDomainSocketChannel.class)
            .bossEventLoopGroup(threads.loop())
            .workerEventLoopGroup(threads.loop())
            .executor(threads.executor());
    for (BindableService service : services) {
      builder.addService(service);
    }
    return new UnixServer(socket, builder.build().start());
  }

  /**
   * The threads of servers and channels.
   *
   * @param loop moves the bytes
   * @param executor runs the services
   */
  public record Threads(EventLoopGroup loop, ExecutorService executor) implements AutoCloseable {
    /**
     * {@return threads; close them at the end}
     *
     * @param calls how many calls may run at once
     */
    public static Threads open(int calls) {
      EventLoopGroup loop = new MultiThreadIoEventLoopGroup(1, NioIoHandler.newFactory());
      // A loop without any scheduled task wakes every second.
      Future<?> ignored = loop.scheduleAtFixedRate(() -> {}, 1, 1, TimeUnit.DAYS);
      return new Threads(loop, Executors.newFixedThreadPool(calls));
    }

    @Override
    public void close() {
      executor.shutdownNow();
      Future<?> ignored = loop.shutdownGracefully(0, 1, TimeUnit.SECONDS);
    }
  }

  /** {@return whether its socket still exists; the kubelet removes those of device plugins} */
  public boolean isThere() {
    return Files.exists(socket);
  }

  /** Stops the server; running calls get a second to end. A second call does nothing. */
  @Override
  public void close() {
    server.shutdown();
    try {
      if (!server.awaitTermination(1, TimeUnit.SECONDS)) {
        server.shutdownNow();
      }
      Files.deleteIfExists(socket);
    } catch (InterruptedException e) {
      server.shutdownNow();
      Thread.currentThread().interrupt();
    } catch (IOException e) {
      // The next server replaces the socket.
      server.shutdownNow();
    }
  }
}
