package dev.vgpu.k8s.node.metrics;

import static java.nio.charset.StandardCharsets.UTF_8;

import com.sun.net.httpserver.HttpExchange;
import com.sun.net.httpserver.HttpServer;
import dev.vgpu.k8s.http.HttpServers;
import java.io.IOException;
import java.net.InetSocketAddress;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.function.Supplier;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Answers {@code /metrics} and {@code /healthz} over HTTP, on threads of its own: a client that
 * reads or writes slowly delays only other clients of it. Safe for use by several threads.
 */
public final class HttpEndpoint implements AutoCloseable {
  private static final Logger log = LoggerFactory.getLogger(HttpEndpoint.class);

  private static final int THREADS = 4;

  private final HttpServer server;
  private final ExecutorService threads = Executors.newFixedThreadPool(THREADS);

  private HttpEndpoint(HttpServer server) {
    this.server = server;
    server.setExecutor(threads);
    server.start();
  }

  /**
   * {@return an endpoint that answers requests}
   *
   * @param port on all addresses; 0 selects any free port
   * @param metrics produces the text of {@code /metrics}
   * @throws IOException if the port is taken
   */
  public static HttpEndpoint open(int port, Supplier<String> metrics) throws IOException {
    HttpServer server = HttpServers.open(new InetSocketAddress(port));
    server.createContext("/metrics", exchange -> answer(exchange, metrics));
    server.createContext("/healthz", exchange -> answer(exchange, () -> "ok\n"));
    return new HttpEndpoint(server);
  }

  private static void answer(HttpExchange exchange, Supplier<String> text) throws IOException {
    try (exchange) {
      byte[] body;
      int status = 200;
      try {
        body = text.get().getBytes(UTF_8);
      } catch (RuntimeException e) {
        log.warn("cannot answer {}", exchange.getRequestURI(), e);
        status = 500;
        body = String.valueOf(e.getMessage()).getBytes(UTF_8);
      }
      exchange.getResponseHeaders().set("Content-Type", "text/plain; version=0.0.4; charset=utf-8");
      exchange.sendResponseHeaders(status, body.length);
      exchange.getResponseBody().write(body);
    }
  }

  /** {@return the port on which it listens} */
  public int port() {
    return server.getAddress().getPort();
  }

  @Override
  public void close() {
    server.stop(0);
    threads.shutdownNow();
  }
}
