package dev.vgpu.cli.metrics;

import static java.nio.charset.StandardCharsets.US_ASCII;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.vgpu.GpuPool;
import dev.vgpu.GpuPoolOptions;
import dev.vgpu.VirtualGpu;
import dev.vgpu.request.MemorySize;
import dev.vgpu.request.VirtualGpuRequest;
import java.io.IOException;
import java.net.InetSocketAddress;
import java.net.Socket;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;

class MetricsServerTest {
  private final HttpClient client = HttpClient.newHttpClient();
  private GpuPool pool;
  private VirtualGpu gpu;
  private MetricsServer server;

  @BeforeEach
  void open() throws IOException {
    pool = GpuPool.open(GpuPoolOptions.builder().scope(GpuPoolOptions.Scope.THIS_JVM).build());
    gpu =
        pool.acquire(
            VirtualGpuRequest.builder().name("scraped").memory(MemorySize.ofMebibytes(7)).build());
    server = MetricsServer.open(pool, MetricsAddress.fromString("0"));
  }

  @AfterEach
  void close() {
    server.close();
    gpu.close();
    pool.close();
  }

  private HttpRequest.Builder request(String path) {
    return HttpRequest.newBuilder(
        URI.create("http://127.0.0.1:" + server.address().getPort() + path));
  }

  private HttpResponse<String> send(HttpRequest.Builder request) throws Exception {
    return client.send(request.build(), HttpResponse.BodyHandlers.ofString());
  }

  @Test
  void aScrapeHasTheMetersOfThePool() throws Exception {
    HttpResponse<String> response = send(request("/metrics"));

    assertThat(response.statusCode()).isEqualTo(200);
    assertThat(response.headers().firstValue("Content-Type"))
        .hasValueSatisfying(type -> assertThat(type).startsWith("text/plain; version=0.0.4"));
    assertThat(response.body().lines())
        .anyMatch(
            line ->
                line.startsWith("vgpu_memory_quota_bytes{")
                    && line.contains("name=\"scraped\"")
                    && line.endsWith(" 7340032.0"));
  }

  @Test
  void nothingElseIsServed() throws Exception {
    assertThat(send(request("/")).statusCode()).isEqualTo(404);
    assertThat(send(request("/metrics/../etc/passwd")).statusCode()).isEqualTo(404);
    HttpRequest.Builder post = request("/metrics").POST(HttpRequest.BodyPublishers.ofString("x"));
    assertThat(send(post).statusCode()).isEqualTo(405);
  }

  /** Otherwise a page that a browser loaded under that name could read the answer. */
  @Test
  void aNameThatIsNotLocalIsRefused() throws Exception {
    assertThat(statusForHost("evil.example:80")).contains(" 403 ");
    assertThat(statusForHost("localhost.evil.example")).contains(" 403 ");
    assertThat(statusForHost("localhost:" + server.address().getPort())).contains(" 200 ");
  }

  private String statusForHost(String host) throws IOException {
    InetSocketAddress address = server.address();
    try (Socket socket = new Socket(address.getAddress(), address.getPort())) {
      socket
          .getOutputStream()
          .write(
              ("GET /metrics HTTP/1.1\r\nHost: " + host + "\r\nConnection: close\r\n\r\n")
                  .getBytes(US_ASCII));
      return new String(socket.getInputStream().readAllBytes(), US_ASCII).lines().findFirst().get();
    }
  }

  @Test
  void manyScrapesAtOnceAreAllAnswered() {
    List<CompletableFuture<HttpResponse<String>>> answers = new ArrayList<>();
    for (int i = 0; i < 200; i++) {
      answers.add(
          client.sendAsync(request("/metrics").build(), HttpResponse.BodyHandlers.ofString()));
    }

    assertThat(answers).allSatisfy(answer -> assertThat(answer.join().statusCode()).isEqualTo(200));
  }

  @Test
  void requestsThatNeverEndHoldUpNoScrape() throws Exception {
    List<Socket> half = new ArrayList<>();
    try {
      for (int i = 0; i < 200; i++) {
        Socket socket = new Socket(server.address().getAddress(), server.address().getPort());
        half.add(socket);
        socket.getOutputStream().write("GET /metrics HTTP/1.1\r\nHo".getBytes(US_ASCII));
      }
      HttpRequest.Builder patient = request("/metrics").timeout(Duration.ofSeconds(60));
      assertThat(send(patient).statusCode()).isEqualTo(200);
    } finally {
      for (Socket socket : half) {
        socket.close();
      }
    }
  }

  /** A limit there would also end the dashboard's stream of events, in the same JVM. */
  @Test
  void otherServersOfTheProcessKeepTheirLimits() {
    assertThat(System.getProperties().stringPropertyNames())
        .doesNotContain("sun.net.httpserver.maxReqTime", "sun.net.httpserver.maxRspTime");
  }

  @Test
  void aPortThatIsTakenIsAnError() {
    assertThatThrownBy(() -> MetricsServer.open(pool, server.address()))
        .isInstanceOf(IOException.class);
  }

  @Test
  void anAddressIsLocalUnlessAHostIsGiven() {
    assertThat(MetricsAddress.fromString("9400").getAddress().isLoopbackAddress()).isTrue();
    assertThat(MetricsAddress.fromString("0.0.0.0:9400").getAddress().isAnyLocalAddress()).isTrue();
    assertThat(MetricsAddress.fromString("[::1]:9400").getPort()).isEqualTo(9400);
  }

  @Test
  void whatIsNoAddressIsToldSo() {
    for (String text : List.of("", "x", "99999", "host:", "a:b:1", "-1")) {
      assertThatThrownBy(() -> MetricsAddress.fromString(text))
          .isInstanceOf(IllegalArgumentException.class)
          .hasMessageContaining("'" + text + "'");
    }
  }
}
