package dev.vgpu.cli.metrics;

import static java.nio.charset.StandardCharsets.UTF_8;

import com.sun.net.httpserver.HttpExchange;
import com.sun.net.httpserver.HttpServer;
import dev.vgpu.GpuPool;
import dev.vgpu.micrometer.VgpuMetrics;
import io.micrometer.prometheusmetrics.PrometheusConfig;
import io.micrometer.prometheusmetrics.PrometheusMeterRegistry;
import java.io.IOException;
import java.net.InetSocketAddress;
import java.util.Set;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import org.jspecify.annotations.Nullable;

/**
 * Serves a pool's meters at {@code /metrics} in Prometheus' text format. Two threads answer;
 * further requests queue. On the loopback interface, a request's host must be a local name.
 * Otherwise a page in a browser could read the meters through a name of its own (DNS rebinding).
 */
public final class MetricsServer implements AutoCloseable {
  private static final String FORMAT = "text/plain; version=0.0.4; charset=utf-8";
  private static final Set<String> LOCAL = Set.of("localhost", "127.0.0.1", "[::1]");
  private static final int THREADS = 2;

  private final HttpServer server;
  private final ExecutorService threads;
  private final PrometheusMeterRegistry registry;
  private final VgpuMetrics metrics;

  private MetricsServer(HttpServer server, GpuPool pool) {
    this.server = server;
    this.registry = new PrometheusMeterRegistry(PrometheusConfig.DEFAULT);
    this.metrics = new VgpuMetrics(pool);
    this.threads =
        Executors.newFixedThreadPool(
            THREADS,
            work -> {
              Thread thread = new Thread(work, "vgpu-metrics");
              thread.setDaemon(true);
              return thread;
            });
  }

  /**
   * Starts serving.
   *
   * @param pool whose meters are served; not closed with this server
   * @param address where to listen; port 0 selects any free port
   * @return the server; close it to stop serving
   * @throws IOException if the address cannot be listened on
   */
  public static MetricsServer open(GpuPool pool, InetSocketAddress address) throws IOException {
    limit("sun.net.httpserver.maxReqTime");
    limit("sun.net.httpserver.maxRspTime");
    MetricsServer opened = new MetricsServer(HttpServer.create(address, 0), pool);
    opened.metrics.bindTo(opened.registry);
    opened.server.setExecutor(opened.threads);
    opened.server.createContext("/", opened::answer);
    opened.server.start();
    return opened;
  }

  /** In seconds. Without it, a client that neither sends nor reads blocks a thread for ever. */
  private static void limit(String property) {
    if (System.getProperty(property) == null) {
      System.setProperty(property, "10");
    }
  }

  /** {@return the address on which the server listens} */
  public InetSocketAddress address() {
    return server.getAddress();
  }

  private void answer(HttpExchange exchange) throws IOException {
    try (exchange) {
      if (!isAllowed(exchange.getRequestHeaders().getFirst("Host"))) {
        send(exchange, 403, "text/plain", "ask for a local name: localhost or 127.0.0.1\n");
      } else if (!exchange.getRequestURI().getPath().equals("/metrics")) {
        send(exchange, 404, "text/plain", "the metrics are at /metrics\n");
      } else if (!exchange.getRequestMethod().equals("GET")) {
        exchange.getResponseHeaders().set("Allow", "GET");
        send(exchange, 405, "text/plain", "only GET\n");
      } else {
        send(exchange, 200, FORMAT, registry.scrape());
      }
    }
  }

  private boolean isAllowed(@Nullable String host) {
    if (!address().getAddress().isLoopbackAddress()) {
      return true;
    }
    return host != null && LOCAL.contains(host.replaceFirst(":\\d+$", ""));
  }

  private static void send(HttpExchange exchange, int status, String type, String text)
      throws IOException {
    byte[] bytes = text.getBytes(UTF_8);
    exchange.getResponseHeaders().set("Content-Type", type);
    exchange.sendResponseHeaders(status, bytes.length);
    exchange.getResponseBody().write(bytes);
  }

  @Override
  public void close() {
    server.stop(0);
    threads.shutdownNow();
    metrics.close();
    registry.close();
  }
}
