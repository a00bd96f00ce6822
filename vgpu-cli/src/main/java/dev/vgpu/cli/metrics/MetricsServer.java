package dev.vgpu.cli.metrics;

import static java.nio.charset.StandardCharsets.UTF_8;

import com.sun.net.httpserver.HttpExchange;
import com.sun.net.httpserver.HttpServer;
import dev.vgpu.GpuPool;
import dev.vgpu.dashboard.http.RequestThreads;
import dev.vgpu.micrometer.VgpuMetrics;
import io.micrometer.prometheusmetrics.PrometheusConfig;
import io.micrometer.prometheusmetrics.PrometheusMeterRegistry;
import java.io.IOException;
import java.net.InetSocketAddress;
import java.util.Set;
import java.util.concurrent.atomic.AtomicLong;
import org.jspecify.annotations.Nullable;

/**
 * Serves a pool's meters at {@code /metrics} in Prometheus' text format. On the loopback interface,
 * a request's host must be a local name. Otherwise a page in a browser could read the meters
 * through a name of its own (DNS rebinding).
 */
public final class MetricsServer implements AutoCloseable {
  private static final String FORMAT = "text/plain; version=0.0.4; charset=utf-8";
  private static final Set<String> LOCAL = Set.of("localhost", "127.0.0.1", "[::1]");

  private final HttpServer server;
  private final RequestThreads threads = new RequestThreads("vgpu-metrics");
  private final PrometheusMeterRegistry registry;
  private final VgpuMetrics metrics;
  private final AtomicLong scrapes = new AtomicLong();
  private String last = "";

  private MetricsServer(HttpServer server, GpuPool pool) {
    this.server = server;
    this.registry = new PrometheusMeterRegistry(PrometheusConfig.DEFAULT);
    this.metrics = new VgpuMetrics(pool);
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
    MetricsServer opened =
        new MetricsServer(HttpServer.create(address, RequestThreads.BACKLOG), pool);
    opened.metrics.bindTo(opened.registry);
    opened.server.setExecutor(opened.threads);
    opened.server.createContext("/", opened::answer);
    opened.server.start();
    return opened;
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
        send(exchange, 200, FORMAT, scrape());
      }
    }
  }

  /** Requests that come at once share an answer; none gets one older than its request. */
  private String scrape() {
    long before = scrapes.get();
    synchronized (scrapes) {
      if (scrapes.get() == before) {
        scrapes.incrementAndGet();
        last = registry.scrape();
      }
      return last;
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
    threads.close();
    metrics.close();
    registry.close();
  }
}
