package dev.vgpu.cli.metrics;

import static java.nio.charset.StandardCharsets.UTF_8;
import static org.assertj.core.api.Assertions.assertThat;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.sun.net.httpserver.HttpExchange;
import com.sun.net.httpserver.HttpServer;
import dev.vgpu.GpuPool;
import dev.vgpu.GpuPoolOptions;
import dev.vgpu.VirtualGpu;
import dev.vgpu.cli.CommandNode;
import dev.vgpu.micrometer.VgpuMetrics;
import dev.vgpu.request.MemorySize;
import dev.vgpu.request.VirtualGpuRequest;
import io.micrometer.prometheusmetrics.PrometheusConfig;
import io.micrometer.prometheusmetrics.PrometheusMeterRegistry;
import java.io.File;
import java.io.IOException;
import java.io.InputStream;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.ServerSocket;
import java.net.URI;
import java.net.URLEncoder;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.TreeMap;
import java.util.TreeSet;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import java.util.stream.Collectors;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/**
 * Every query of the Grafana dashboard, run by Prometheus over a node with emulated GPUs: {@code
 * vgpu serve --metrics}, a program, and a service with its own meters. If Prometheus is neither in
 * the directory VGPU_PROMETHEUS nor on the path, the test says so and passes. The gate gets it
 * where apt-get has it.
 */
class GrafanaQueriesIT {
  private static final ObjectMapper JSON = new ObjectMapper();
  private static final Pattern PORT = Pattern.compile("metrics at http://127\\.0\\.0\\.1:(\\d+)/");
  private final HttpClient client = HttpClient.newHttpClient();
  @TempDir private Path directory;
  private CommandNode node;

  @BeforeEach
  void open() throws IOException {
    node = CommandNode.open();
  }

  @AfterEach
  void close() throws IOException {
    node.close();
  }

  private static Optional<Path> prometheus() {
    String given = System.getenv().getOrDefault("VGPU_PROMETHEUS", "");
    String path = (given.isEmpty() ? "" : given + File.pathSeparator) + System.getenv("PATH");
    return Arrays.stream(path.split(File.pathSeparator, -1))
        .map(folder -> Path.of(folder, "prometheus"))
        .filter(Files::isExecutable)
        .findFirst();
  }

  private static JsonNode dashboard() throws IOException {
    try (InputStream in =
        VgpuMetrics.class.getResourceAsStream("/META-INF/vgpu/grafana-dashboard.json")) {
      return JSON.readTree(in);
    }
  }

  /** The queries, with what Grafana puts in the place of its variables: all GPUs and names. */
  private static Set<String> queries() throws IOException {
    Set<String> queries = new TreeSet<>();
    for (JsonNode query : dashboard().findValues("expr")) {
      queries.add(
          query
              .asText()
              .replace("$__rate_interval", "10s")
              .replace("$gpu", ".*")
              .replace("$name", ".*"));
    }
    assertThat(queries).isNotEmpty().noneMatch(query -> query.contains("$"));
    return queries;
  }

  @Test
  void everyQueryFindsDataInPrometheus() throws Exception {
    Optional<Path> program = prometheus();
    if (program.isEmpty()) {
      System.err.println("no prometheus: the queries of the Grafana dashboard were NOT run by it");
      return;
    }
    CommandNode.Command serve = node.vgpu("serve", "--metrics", "0").prints("metrics at");
    Matcher served = PORT.matcher(serve.out());
    assertThat(served.find()).as("%s", serve).isTrue();
    CommandNode.Command work =
        node.run(
            "--name chat --memory 1GiB --compute 40 --class online",
            CommandNode.program("spin"),
            "--us=500",
            "--seconds=200",
            "--hold=64MiB");
    try (Service service = new Service(node.runDirectory());
        Prometheus prometheus =
            new Prometheus(program.get(), Integer.parseInt(served.group(1)), service.port())) {
      for (String query : queries()) {
        CommandNode.await(() -> prometheus.finds(query), query + ": " + prometheus + " " + work);
      }
      for (String label : Set.of("gpu", "name")) {
        CommandNode.await(() -> prometheus.knows(label), "values of " + label);
      }
      prometheus.acceptsTheAlerts();
    }
  }

  /** What an integrator's service does: a timed virtual GPU of the node, and a scrape. */
  private static final class Service implements AutoCloseable {
    private final PrometheusMeterRegistry registry =
        new PrometheusMeterRegistry(PrometheusConfig.DEFAULT);
    private final GpuPool pool;
    private final VirtualGpu gpu;
    private final HttpServer server;

    Service(Path runDirectory) throws IOException {
      pool = GpuPool.open(GpuPoolOptions.builder().runDirectory(runDirectory).build());
      VirtualGpuRequest request =
          VirtualGpuRequest.builder().name("embed").memory(MemorySize.ofMebibytes(256)).build();
      gpu = VgpuMetrics.timed(pool.acquire(request), registry);
      server = HttpServer.create(new InetSocketAddress(InetAddress.getLoopbackAddress(), 0), 0);
      server.createContext("/metrics", this::scrape);
      server.start();
    }

    int port() {
      return server.getAddress().getPort();
    }

    /** Each scrape comes after a call, so that there are calls at any time. */
    private void scrape(HttpExchange exchange) throws IOException {
      try (exchange) {
        gpu.run(() -> {});
        byte[] text = registry.scrape().getBytes(UTF_8);
        exchange.getResponseHeaders().set("Content-Type", "text/plain; version=0.0.4");
        exchange.sendResponseHeaders(200, text.length);
        exchange.getResponseBody().write(text);
      } catch (InterruptedException e) {
        Thread.currentThread().interrupt();
      }
    }

    @Override
    public void close() {
      server.stop(0);
      gpu.close();
      pool.close();
      registry.close();
    }
  }

  private final class Prometheus implements AutoCloseable {
    private final Process process;
    private final Path log = directory.resolve("prometheus.log");
    private final int port;
    private final Map<String, String> answers = new TreeMap<>();

    Prometheus(Path program, int... targets) throws IOException {
      try (ServerSocket free = new ServerSocket(0, 1, InetAddress.getLoopbackAddress())) {
        port = free.getLocalPort();
      }
      try (InputStream in = VgpuMetrics.class.getResourceAsStream("/META-INF/vgpu/alerts.yaml")) {
        Files.copy(in, directory.resolve("alerts.yaml"));
      }
      Path configuration = directory.resolve("prometheus.yaml");
      Files.writeString(configuration, configuration(targets));
      process =
          new ProcessBuilder(
                  program.toString(),
                  "--config.file=" + configuration,
                  "--storage.tsdb.path=" + directory.resolve("data"),
                  "--web.listen-address=127.0.0.1:" + port)
              .redirectErrorStream(true)
              .redirectOutput(log.toFile())
              .start();
    }

    private static String configuration(int... ports) {
      return """
          global: {scrape_interval: 1s, evaluation_interval: 1s}
          rule_files: [alerts.yaml]
          scrape_configs:
            - job_name: vgpu
              static_configs: [{targets: [PORTS]}]
          """
          .replace(
              "PORTS",
              Arrays.stream(ports)
                  .mapToObj(each -> "'127.0.0.1:" + each + "'")
                  .collect(Collectors.joining(",")));
    }

    private JsonNode ask(String path) {
      try {
        URI uri = URI.create("http://127.0.0.1:" + port + path);
        return JSON.readTree(
            client
                .send(HttpRequest.newBuilder(uri).build(), HttpResponse.BodyHandlers.ofString())
                .body());
      } catch (IOException e) {
        assertThat(process.isAlive()).as("%s", this).isTrue();
        return JSON.missingNode(); // It has not begun to listen.
      } catch (InterruptedException e) {
        throw new IllegalStateException(e);
      }
    }

    /** Whether a query has a result in which every value is a number. */
    boolean finds(String query) {
      JsonNode answer = ask("/api/v1/query?query=" + URLEncoder.encode(query, UTF_8));
      answers.put(query, answer.toString());
      assertThat(answer.path("status").asText("success")).as(query).isEqualTo("success");
      JsonNode result = answer.path("data").path("result");
      for (JsonNode series : result) {
        if (series.path("value").path(1).asText().equals("NaN")) {
          return false; // A quantile of no wait within the interval.
        }
      }
      return !result.isEmpty();
    }

    boolean knows(String label) {
      return !ask("/api/v1/label/"
              + label
              + "/values?match[]=vgpu_memory_quota_bytes".replace("[", "%5B").replace("]", "%5D"))
          .path("data")
          .isEmpty();
    }

    void acceptsTheAlerts() throws InterruptedException {
      CommandNode.await(
          () -> {
            var health = ask("/api/v1/rules").findValuesAsText("health");
            return !health.isEmpty() && health.stream().allMatch("ok"::equals);
          },
          this);
    }

    @Override
    public String toString() {
      try {
        return answers + "\n" + Files.readString(log, UTF_8);
      } catch (IOException e) {
        return answers + "\n" + e;
      }
    }

    @Override
    public void close() {
      process.destroyForcibly().onExit().join();
    }
  }
}
