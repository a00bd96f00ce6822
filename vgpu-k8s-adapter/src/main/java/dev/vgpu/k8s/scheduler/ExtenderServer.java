package dev.vgpu.k8s.scheduler;

import com.fasterxml.jackson.core.JsonFactory;
import com.fasterxml.jackson.core.JsonProcessingException;
import com.fasterxml.jackson.core.StreamReadConstraints;
import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.sun.net.httpserver.HttpExchange;
import com.sun.net.httpserver.HttpServer;
import com.sun.net.httpserver.HttpsExchange;
import dev.vgpu.k8s.http.HttpServers;
import java.io.IOException;
import java.io.OutputStream;
import java.net.HttpURLConnection;
import java.net.InetSocketAddress;
import java.nio.charset.StandardCharsets;
import java.util.Optional;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Semaphore;
import java.util.function.BooleanSupplier;
import javax.net.ssl.SSLContext;
import javax.net.ssl.SSLPeerUnverifiedException;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Serves the extender over HTTP: {@code /filter}, {@code /filter-claims}, {@code /prioritize},
 * {@code /preempt}, {@code /bind}, and {@code /readyz}. A process that is not the leader answers
 * 503 to all of them. With TLS, clients without a certificate that it trusts may ask only whether
 * it is ready. Must be closed.
 */
final class ExtenderServer implements AutoCloseable {
  private static final Logger LOG = LoggerFactory.getLogger(ExtenderServer.class);

  /** A pod has at most 1.5 MiB in etcd; beside it are the names of at most 5,000 nodes. */
  private static final int MOST_BYTES = 4 << 20;

  private static final ObjectMapper JSON =
      new ObjectMapper(
          JsonFactory.builder()
              .streamReadConstraints(
                  StreamReadConstraints.builder().maxDocumentLength(MOST_BYTES).build())
              .build());

  private static final int MOST_BODIES = 16;

  private final HttpServer server;
  private final ExecutorService threads = Executors.newCachedThreadPool();

  /** Bounds the memory of requests that are being read. */
  private final Semaphore bodies = new Semaphore(MOST_BODIES);

  private final BooleanSupplier leads;

  /**
   * Starts serving.
   *
   * @param address where to listen; port 0 selects a free one
   * @param tls with which certificates; HTTP without
   * @param service answers the requests
   * @param leads whether this process is the leader now
   */
  ExtenderServer(
      InetSocketAddress address,
      Optional<SSLContext> tls,
      ExtenderService service,
      BooleanSupplier leads)
      throws IOException {
    this.leads = leads;
    server = tls.isPresent() ? HttpServers.open(address, tls.get()) : HttpServers.open(address);
    server.setExecutor(threads);
    serve("/filter", service::filter);
    serve("/filter-claims", service::filterClaims);
    serve("/prioritize", service::prioritize);
    serve("/preempt", service::preempt);
    serve("/bind", service::bind);
    server.createContext(
        "/readyz",
        exchange -> {
          try (exchange) {
            boolean isReady = leads.getAsBoolean();
            reply(
                exchange,
                isReady ? HttpURLConnection.HTTP_OK : HttpURLConnection.HTTP_UNAVAILABLE,
                isReady ? "leads" : "another one leads");
          }
        });
    server.start();
  }

  /** {@return the port on which it listens} */
  int port() {
    return server.getAddress().getPort();
  }

  private interface Question {
    JsonNode answer(JsonNode args) throws JsonProcessingException, InterruptedException;
  }

  private void serve(String path, Question question) {
    server.createContext(
        path,
        exchange -> {
          try (exchange) {
            answer(exchange, question);
          }
        });
  }

  private void answer(HttpExchange exchange, Question question) throws IOException {
    if (!isKnown(exchange)) {
      reply(exchange, HttpURLConnection.HTTP_FORBIDDEN, "a client certificate is needed");
      return;
    }
    if (!leads.getAsBoolean()) {
      reply(exchange, HttpURLConnection.HTTP_UNAVAILABLE, "another one leads");
      return;
    }
    try {
      JsonNode asked = read(exchange);
      reply(exchange, HttpURLConnection.HTTP_OK, JSON.writeValueAsBytes(question.answer(asked)));
    } catch (JsonProcessingException e) {
      reply(
          exchange,
          HttpURLConnection.HTTP_BAD_REQUEST,
          "not the extender's JSON: " + e.getOriginalMessage());
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
      reply(exchange, HttpURLConnection.HTTP_UNAVAILABLE, "ending");
    } catch (RuntimeException e) {
      LOG.error("{} failed", exchange.getRequestURI(), e);
      reply(exchange, HttpURLConnection.HTTP_INTERNAL_ERROR, String.valueOf(e.getMessage()));
    }
  }

  /** {@return what is asked} It is parsed as it arrives, which takes less memory than its bytes. */
  private JsonNode read(HttpExchange exchange) throws IOException, InterruptedException {
    bodies.acquire();
    try {
      return JSON.readTree(exchange.getRequestBody());
    } finally {
      bodies.release();
    }
  }

  /** {@return whether a client may ask: with TLS, only if its certificate is trusted} */
  private static boolean isKnown(HttpExchange exchange) {
    if (!(exchange instanceof HttpsExchange secure)) {
      return true;
    }
    try {
      return secure.getSSLSession().getPeerCertificates().length > 0;
    } catch (SSLPeerUnverifiedException e) {
      return false;
    }
  }

  private static void reply(HttpExchange exchange, int status, String text) throws IOException {
    reply(exchange, status, text.getBytes(StandardCharsets.UTF_8));
  }

  private static void reply(HttpExchange exchange, int status, byte[] bytes) throws IOException {
    exchange.getResponseHeaders().set("Content-Type", "application/json");
    exchange.sendResponseHeaders(status, bytes.length);
    try (OutputStream out = exchange.getResponseBody()) {
      out.write(bytes);
    }
  }

  @Override
  public void close() {
    server.stop(0);
    threads.shutdownNow();
  }
}
