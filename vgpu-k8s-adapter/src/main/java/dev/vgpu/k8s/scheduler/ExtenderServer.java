package dev.vgpu.k8s.scheduler;

import com.fasterxml.jackson.core.JsonProcessingException;
import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.sun.net.httpserver.HttpExchange;
import com.sun.net.httpserver.HttpServer;
import dev.vgpu.k8s.http.HttpServers;
import java.io.IOException;
import java.io.OutputStream;
import java.net.HttpURLConnection;
import java.net.InetSocketAddress;
import java.nio.charset.StandardCharsets;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.function.BooleanSupplier;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Serves the extender over HTTP: {@code /filter}, {@code /filter-claims}, {@code /prioritize},
 * {@code /bind}, and {@code /readyz}. A process that is not the leader answers 503 to all of them.
 * Must be closed.
 */
final class ExtenderServer implements AutoCloseable {
  private static final Logger LOG = LoggerFactory.getLogger(ExtenderServer.class);
  private static final ObjectMapper JSON = new ObjectMapper();
  private static final int MOST_BYTES = 64 << 20;

  private final HttpServer server;
  private final ExecutorService threads = Executors.newCachedThreadPool();
  private final BooleanSupplier leads;

  /**
   * Starts serving.
   *
   * @param address where to listen; port 0 selects a free one
   * @param service answers the requests
   * @param leads whether this process is the leader now
   */
  ExtenderServer(InetSocketAddress address, ExtenderService service, BooleanSupplier leads)
      throws IOException {
    this.leads = leads;
    server = HttpServers.open(address);
    server.setExecutor(threads);
    serve("/filter", service::filter);
    serve("/filter-claims", service::filterClaims);
    serve("/prioritize", service::prioritize);
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
    byte[] body = exchange.getRequestBody().readNBytes(MOST_BYTES);
    if (!leads.getAsBoolean()) {
      reply(exchange, HttpURLConnection.HTTP_UNAVAILABLE, "another one leads");
      return;
    }
    try {
      reply(
          exchange,
          HttpURLConnection.HTTP_OK,
          JSON.writeValueAsString(question.answer(JSON.readTree(body))));
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

  private static void reply(HttpExchange exchange, int status, String text) throws IOException {
    byte[] bytes = text.getBytes(StandardCharsets.UTF_8);
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
