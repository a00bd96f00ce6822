package dev.vgpu.bench.demo.load;

import static java.nio.charset.StandardCharsets.UTF_8;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import com.sun.net.httpserver.HttpServer;
import dev.vgpu.bench.demo.figure.RequestResult;
import dev.vgpu.bench.trace.Schedule;
import dev.vgpu.bench.trace.ScheduleFile;
import dev.vgpu.bench.trace.ScheduledRequest;
import dev.vgpu.cli.time.NanoClock;
import java.io.BufferedReader;
import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.io.PrintStream;
import java.io.StringReader;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.URI;
import java.net.http.HttpClient;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

class LoadGeneratorTest {
  private final ByteArrayOutputStream err = new ByteArrayOutputStream();
  private final ByteArrayOutputStream out = new ByteArrayOutputStream();
  private final ExecutorService executor = Executors.newCachedThreadPool();
  private HttpServer server;

  @TempDir private Path directory;

  @BeforeEach
  void startServer() throws IOException {
    server = HttpServer.create(new InetSocketAddress(InetAddress.getLoopbackAddress(), 0), 0);
    server.setExecutor(executor);
    server.createContext(
        "/",
        exchange -> {
          exchange.getRequestBody().readAllBytes();
          int status = exchange.getRequestURI().getPath().equals("/bad") ? 503 : 200;
          exchange.sendResponseHeaders(status, -1);
          exchange.close();
        });
    server.start();
  }

  @AfterEach
  void stopServer() {
    server.stop(0);
    executor.shutdownNow();
  }

  @Test
  void everyRequestHasAResultInOrder() throws Exception {
    List<RequestResult> results = run(server.getAddress().getPort(), "/embed", "/bad", "/embed");
    assertThat(results).extracting(RequestResult::path).containsExactly("/embed", "/bad", "/embed");
    assertThat(results).extracting(RequestResult::status).containsExactly(200, 503, 200);
    for (RequestResult result : results) {
      assertThat(result.sentNs()).isGreaterThanOrEqualTo(result.scheduledNs());
      assertThat(result.doneNs()).isGreaterThanOrEqualTo(result.sentNs());
    }
    assertThat(out.toString(UTF_8).lines())
        .hasSize(4)
        .startsWith("READY", "LOADED", "STARTED")
        .last()
        .asString()
        .startsWith("DONE requests=3 failed=1");
  }

  @Test
  void requestsWithoutAnAnswerFailAndAreCounted() throws Exception {
    int port = server.getAddress().getPort();
    server.stop(0);
    List<RequestResult> results = run(port, "/embed", "/embed");
    assertThat(results).extracting(RequestResult::status).containsExactly(0, 0);
    assertThat(out.toString(UTF_8)).contains("DONE requests=2 failed=2");
    assertThat(err.toString(UTF_8)).contains("/embed: ", "ConnectException");
  }

  @Test
  void unknownCommandIsRefused() {
    assertThatThrownBy(() -> generator(1).serve(new BufferedReader(new StringReader("NONSENSE\n"))))
        .isInstanceOf(IOException.class)
        .hasMessageContaining("NONSENSE");
  }

  private List<RequestResult> run(int port, String... paths) throws Exception {
    List<ScheduledRequest> requests = new ArrayList<>();
    for (String path : paths) {
      requests.add(new ScheduledRequest(requests.size() * 1_000L, path, List.of("text")));
    }
    Path schedule = directory.resolve("schedule.tsv");
    Path results = directory.resolve("results.txt");
    ScheduleFile.write(schedule, new Schedule(requests, 1_000_000));
    String commands = "LOAD\t" + schedule + "\nRUN\t" + results + "\n";
    generator(port).serve(new BufferedReader(new StringReader(commands)));
    return RequestResult.read(results);
  }

  private LoadGenerator generator(int port) {
    return new LoadGenerator(
        URI.create("http://127.0.0.1:" + port),
        HttpClient.newBuilder().version(HttpClient.Version.HTTP_1_1).build(),
        NanoClock.system(),
        new PrintStream(out, true, UTF_8),
        new PrintStream(err, true, UTF_8));
  }
}
