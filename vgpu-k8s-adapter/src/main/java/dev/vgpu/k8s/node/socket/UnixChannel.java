package dev.vgpu.k8s.node.socket;

import io.grpc.ManagedChannel;
import io.grpc.netty.NettyChannelBuilder;
import io.netty.channel.socket.nio.NioDomainSocketChannel;
import java.net.UnixDomainSocketAddress;
import java.nio.file.Path;

/** Connections to gRPC services on Unix sockets. */
public final class UnixChannel {
  private UnixChannel() {}

  /**
   * {@return a connection, which is established on first use}
   *
   * @param socket the service's socket
   * @param threads moves the bytes
   */
  public static ManagedChannel to(Path socket, UnixServer.Threads threads) {
    return NettyChannelBuilder.forAddress(UnixDomainSocketAddress.of(socket))
        .channelType(NioDomainSocketChannel.class)
        .eventLoopGroup(threads.loop())
        .executor(threads.executor())
        .overrideAuthority("localhost")
        .usePlaintext()
        .build();
  }
}
