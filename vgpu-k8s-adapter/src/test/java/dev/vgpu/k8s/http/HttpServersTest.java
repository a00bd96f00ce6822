package dev.vgpu.k8s.http;

import static org.assertj.core.api.Assertions.assertThat;

import com.sun.net.httpserver.HttpServer;
import java.lang.reflect.Field;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.StandardSocketOptions;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.nio.channels.SocketChannel;
import java.util.Set;
import java.util.concurrent.CompletableFuture;
import org.junit.jupiter.api.Test;

class HttpServersTest {
  /** The option is that of the socket itself: the JDK ignores a setting that comes too late. */
  @Test
  void theBodyOfAnAnswerDoesNotWaitForItsHeaders() throws Exception {
    CompletableFuture<Boolean> noDelay = new CompletableFuture<>();
    HttpServer server =
        HttpServers.open(new InetSocketAddress(InetAddress.getLoopbackAddress(), 0));
    server.createContext(
        "/",
        exchange -> {
          try (exchange) {
            noDelay.complete(socket(server).getOption(StandardSocketOptions.TCP_NODELAY));
            exchange.sendResponseHeaders(200, 1);
            exchange.getResponseBody().write('1');
          } catch (ReflectiveOperationException e) {
            noDelay.completeExceptionally(e);
          }
        });
    server.start();
    try {
      URI uri = URI.create("http://127.0.0.1:" + server.getAddress().getPort());
      assertThat(
              HttpClient.newHttpClient()
                  .send(HttpRequest.newBuilder(uri).build(), HttpResponse.BodyHandlers.ofString())
                  .body())
          .isEqualTo("1");
      assertThat(noDelay.get()).isTrue();
    } finally {
      server.stop(0);
    }
  }

  /** {@return the socket of the server's only connection, which only the JDK's own code knows} */
  private static SocketChannel socket(HttpServer server) throws ReflectiveOperationException {
    Set<?> connections = (Set<?>) field(field(server, "server"), "allConnections");
    return (SocketChannel) field(connections.iterator().next(), "chan");
  }

  private static Object field(Object owner, String name) throws ReflectiveOperationException {
    Field field = owner.getClass().getDeclaredField(name);
    field.setAccessible(true);
    return field.get(owner);
  }
}
