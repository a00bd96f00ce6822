package dev.vgpu.samples.spring;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.assertj.core.api.Assertions.within;

import com.fasterxml.jackson.databind.ObjectMapper;
import com.sun.net.httpserver.HttpExchange;
import com.sun.net.httpserver.HttpServer;
import java.io.IOException;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.ServerSocket;
import java.net.URI;
import java.net.http.HttpTimeoutException;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.List;
import java.util.concurrent.atomic.AtomicLong;
import java.util.stream.IntStream;
import org.junit.jupiter.api.Test;

/** Tests how the load is chosen, with a service whose GPU time is known. */
class LoadTest {
  private static final ObjectMapper JSON = new ObjectMapper();
  private static final Duration PATIENCE = Duration.ofSeconds(10);
  private static final long SECOND_NS = 1_000_000_000L;

  /** A request each millisecond, of 1 to 9 rows. */
  private static final ReplayTrace TRACE =
      new ReplayTrace(
          IntStream.range(0, 500)
              .mapToObj(i -> new ReplayTrace.Request(i * 1_000_000L, 1 + i % 9))
              .toList());

  /** Answers like {@link ModelService}; a row takes the GPU time that it is made with. */
  private static final class Known implements AutoCloseable {
    private final AtomicLong rows = new AtomicLong();
    private final HttpServer server;

    Known(double gpuSecondsOfARow) throws IOException {
      server = HttpServer.create(new InetSocketAddress(InetAddress.getLoopbackAddress(), 0), 0);
      server.createContext(
          "/models/chat",
          exchange -> {
            rows.addAndGet(JSON.readValue(exchange.getRequestBody(), float[][].class).length);
            answer(exchange, "[]");
          });
      server.createContext(
          "/actuator/vgpu",
          exchange ->
              answer(
                  exchange,
                  "{\"leases\":[{\"name\":\"chat\",\"gpuTimeSeconds\":"
                      + rows.get() * gpuSecondsOfARow
                      + "}]}"));
      server.start();
    }

    private static void answer(HttpExchange exchange, String body) throws IOException {
      byte[] bytes = body.getBytes(StandardCharsets.UTF_8);
      exchange.sendResponseHeaders(200, bytes.length);
      exchange.getResponseBody().write(bytes);
      exchange.close();
    }

    ChatClient client() {
      return new ChatClient(
          URI.create("http://127.0.0.1:" + server.getAddress().getPort()), PATIENCE);
    }

    @Override
    public void close() {
      server.stop(0);
    }
  }

  @Test
  void theRequestsTakeAQuarterOfTheGpuHoweverLongTheirAnswersTake() throws Exception {
    try (Known service = new Known(0.001);
        ChatClient chat = service.client()) {
      Load load = new Load(chat, TRACE, SECOND_NS);
      load.calibrate();
      List<ReplayTrace.Request> requests = load.requests();

      assertThat(ReplayTrace.rows(requests)).isBetween(250, 258);
      assertThat(requests.get(requests.size() - 1).dueNs()).isLessThan(SECOND_NS);
    }
  }

  @Test
  void aServiceThatUsesNoGpuTimeEndsTheCalibration() throws Exception {
    try (Known service = new Known(0);
        ChatClient chat = service.client()) {
      assertThatThrownBy(() -> chat.calibrate(TRACE))
          .isInstanceOf(IOException.class)
          .hasMessageContaining("used no GPU time");
    }
  }

  @Test
  void aServiceThatDoesNotAnswerEndsTheCalibration() throws Exception {
    ReplayTrace trace = new ReplayTrace(List.of(new ReplayTrace.Request(0, 1)));
    try (ServerSocket mute = new ServerSocket(0, 1, InetAddress.getLoopbackAddress());
        ChatClient chat =
            new ChatClient(
                URI.create("http://127.0.0.1:" + mute.getLocalPort()), Duration.ofMillis(50))) {
      assertThatThrownBy(() -> chat.calibrate(trace)).isInstanceOf(HttpTimeoutException.class);
    }
  }

  @Test
  void aRoundTellsWhereTheGpusTimeWent() {
    LoadReport.Phase alone = phase(2.0, 0.5, 10, 0, 0);
    LoadReport.Round round =
        new LoadReport.Round(
            alone,
            phase(1.0, 0, 0, 100, 1.0),
            phase(2.0, 0.5, 11, 120, 1.4),
            phase(2.0, 0.5, 12, 0, 0),
            phase(2.0, 0.5, 22, 150, 0));

    assertThat(round.besideToAlone()).isEqualTo(1.0);
    assertThat(round.againToAlone()).isEqualTo(1.2);
    assertThat(round.uncontrolledToAlone()).isEqualTo(2.0);
    assertThat(round.ofWhatIsLeft(round.beside())).isCloseTo(0.8, within(1e-9));
    assertThat(round.ofWhatIsLeft(round.uncontrolled())).isCloseTo(1.0, within(1e-9));
    assertThat(round.finished()).isCloseTo(0.6, within(1e-9));
    assertThat(round.lost()).isCloseTo(0.1, within(1e-9));
    assertThat(round.nobody()).isCloseTo(0.05, within(1e-9));
  }

  private static LoadReport.Phase phase(
      double seconds, double chatGpuSeconds, double latencyMs, long batches, double jobSeconds) {
    return new LoadReport.Phase(
        seconds,
        new ChatClient.Answers(List.of(latencyMs), 0),
        chatGpuSeconds,
        new BatchRows.Progress(batches, jobSeconds, 0));
  }
}
