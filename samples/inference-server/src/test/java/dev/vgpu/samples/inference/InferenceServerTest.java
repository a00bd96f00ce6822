package dev.vgpu.samples.inference;

import static org.assertj.core.api.Assertions.assertThat;

import com.fasterxml.jackson.databind.JsonNode;
import java.io.IOException;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.locks.LockSupport;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;

final class InferenceServerTest {
  private static final HttpClient CLIENT = HttpClient.newHttpClient();
  private static final String TEXT = "{\"texts\":[\"a cat sits on the mat\"]}";

  private static InferenceServer server;
  private static String url;

  /** An answer: its status and its JSON. */
  private record Answer(int status, JsonNode json) {}

  @BeforeAll
  static void start() throws Exception {
    server = new InferenceServer();
    url = "http://127.0.0.1:" + server.start(new ServerArguments(0, false, false));
  }

  @AfterAll
  static void close() {
    server.close();
  }

  private static Answer post(String path, String body) throws Exception {
    return send(HttpRequest.newBuilder().POST(HttpRequest.BodyPublishers.ofString(body)), path);
  }

  private static Answer get(String path) throws Exception {
    return send(HttpRequest.newBuilder().GET(), path);
  }

  private static Answer send(HttpRequest.Builder request, String path) throws Exception {
    HttpResponse<String> response =
        CLIENT.send(
            request.uri(URI.create(url + path)).timeout(Duration.ofSeconds(20)).build(),
            HttpResponse.BodyHandlers.ofString());
    return new Answer(response.statusCode(), Json.MAPPER.readTree(response.body()));
  }

  private static String phase(String sharing, String models, String offline) {
    return "{'name':'p','sharing':'S','models':[M],'offline':[O]}"
        .replace('\'', '"')
        .replace("\"S\"", "\"" + sharing + "\"")
        .replace("[M]", "[" + models + "]")
        .replace("[O]", "[" + offline + "]");
  }

  private static String model(String name, String preemptionClass, String more) {
    return "{'name':'N','class':'C','policy':'BEST_EFFORT','percent':0,'memoryMiB':256,M}"
        .replace("'N'", "'" + name + "'")
        .replace("'C'", "'" + preemptionClass + "'")
        .replace(",M}", "," + more + "}")
        .replace('\'', '"');
  }

  private static String online(String name) {
    return model(name, "ONLINE", "\"maxConcurrentCalls\":1");
  }

  private static String corpus(String name) {
    return model(name, "OFFLINE", "\"workers\":2");
  }

  /** Polls until the phase's only tenant has embedded something. */
  private static JsonNode reportWithItems() throws Exception {
    while (true) {
      JsonNode report = get("/demo/phase").json();
      if (report.at("/tenants/0/items").asLong() > 0) {
        return report;
      }
    }
  }

  @Test
  void answersWithAVectorPerText() throws Exception {
    post("/demo/phase", phase("none", online("online") + "," + online("other"), ""));

    Answer answer = post("/embed", "{\"texts\":[\"one\",\"two\"]}");

    assertThat(answer.status()).isEqualTo(200);
    assertThat(answer.json().path("vectors")).hasSize(2);
    assertThat(answer.json().at("/vectors/0")).hasSize(EmbeddingModel.DIMENSIONS);
    assertThat(post("/models/other/embed", "{\"texts\":[\"one\",\"two\"]}")).isEqualTo(answer);
    assertThat(get("/models").json()).hasSize(2);
    assertThat(get("/healthz").status()).isEqualTo(200);
  }

  @ParameterizedTest
  @CsvSource(
      delimiter = '|',
      quoteCharacter = '`',
      value = {
        "{\"texts\":[]}|1 to 64 texts",
        "{\"texts\":[\" \"]}|texts[0] is empty",
        "{\"texts\":[\"a\",null]}|texts[1] is empty",
        "{\"texts\":[\"a\"],\"x\":1}|unknown field 'x'",
        "{\"texts\":|line 1",
        "{\"texts\":[\"a\"]} {|expected",
        "{\"texts\":[{}]}|texts.[0] is missing or of another type",
        "{}|texts is missing",
        "[]|no JSON object",
        "``|expected",
      })
  void saysWhatIsWrongWithARequest(String body, String message) throws Exception {
    Answer answer = post("/embed", body);

    assertThat(answer.status()).isEqualTo(400);
    assertThat(answer.json().path("error").asText()).contains(message);
  }

  @Test
  void refusesWhatIsTooLong() throws Exception {
    String manyTexts = "\"a\",".repeat(Routes.MAX_TEXTS) + "\"a\"";

    assertThat(post("/embed", "{\"texts\":[" + manyTexts + "]}").status()).isEqualTo(400);
    assertThat(post("/embed", "{\"texts\":[\"" + "a".repeat(100_000) + "\"]}").json().toString())
        .contains("texts[0] has 100000 characters, and at most 10000 are read");
    assertThat(post("/embed", "{\"texts\":[\"" + "a b ".repeat(300) + "\"]}").json().toString())
        .contains("texts[0] has 602 tokens, and the model reads at most 512");
    assertThat(post("/embed", " ".repeat(Json.MAX_BODY_BYTES + 1)).status()).isEqualTo(413);
    assertThat(post("/models/missing/embed", TEXT).status()).isEqualTo(404);
  }

  @Test
  void offlineWorkRunsWithoutAnyRequest() throws Exception {
    assertThat(post("/demo/phase", phase("none", "", corpus("corpus"))).status()).isEqualTo(200);

    JsonNode report = reportWithItems();

    JsonNode tenant = report.at("/tenants/0");
    assertThat(tenant.path("items").asLong() % OfflineCorpus.BATCH).isZero();
    assertThat(tenant.path("gpuTimeNs").asLong()).isPositive();
    assertThat(tenant.path("memoryPeakBytes").asLong())
        .isGreaterThan(EmbeddingModel.WEIGHTS.bytes())
        .isLessThan(tenant.path("quotaBytes").asLong());
    assertThat(report.at("/spans/0/0").asInt()).isZero();
    assertThat(report.at("/spans/0/2").asLong()).isGreaterThan(report.at("/spans/0/1").asLong());
    assertThat(post("/embed", TEXT).status()).isEqualTo(404);
  }

  @ParameterizedTest
  @ValueSource(
      strings = {
        "{\"name\":\"p\",\"sharing\":\"some\",\"models\":[],\"offline\":[]}",
        "{\"name\":\"p\",\"sharing\":\"none\",\"models\":[]}",
      })
  void aWrongPhaseIsRefusedAndTheOldOneGoesOn(String body) throws Exception {
    post("/demo/phase", phase("none", "", corpus("corpus")));
    long items = reportWithItems().at("/tenants/0/items").asLong();
    String twice = phase("none", online("online") + "," + online("online"), "");
    String percent = phase("none", online("online").replace("\"percent\":0", "\"percent\":5"), "");

    assertThat(post("/demo/phase", body).status()).isEqualTo(400);
    assertThat(post("/demo/phase", twice).json().toString()).contains("two tenants have one name");
    assertThat(post("/demo/phase", percent).json().toString())
        .contains("best effort promises no share");
    assertThat(reportWithItems().at("/tenants/0/items").asLong()).isGreaterThanOrEqualTo(items);
  }

  @Test
  void measuresTheModelAlone() throws Exception {
    post("/demo/phase", phase("none", "", ""));

    JsonNode result = post("/demo/calibrate", "{\"texts\":[\"a text\"],\"runs\":3}").json();

    assertThat(result.path("medianNs").asLong()).isPositive();
    assertThat(post("/demo/calibrate", "{\"texts\":[\"a\"],\"runs\":0}").status()).isEqualTo(400);
  }

  @ParameterizedTest
  @ValueSource(strings = {"none", "vgpu"})
  void requestsDuringAChangeOfPhaseAreAnswered(String sharing) throws Exception {
    ExecutorService clients = Executors.newFixedThreadPool(6);
    try {
      AtomicBoolean done = new AtomicBoolean();
      ConcurrentHashMap.KeySetView<Integer, Boolean> seen = ConcurrentHashMap.newKeySet();
      List<Future<?>> running = new ArrayList<>();
      post("/demo/phase", phase(sharing, online("online"), corpus("corpus")));
      for (int i = 0; i < 6; i++) {
        running.add(
            clients.submit(
                () -> {
                  while (!done.get()) {
                    seen.add(post("/embed", TEXT).status());
                  }
                  return null;
                }));
      }
      for (int i = 0; i < 8; i++) {
        String models = i % 2 == 0 ? online("other") : online("online");
        assertThat(post("/demo/phase", phase(sharing, models, corpus("corpus"))).status())
            .isEqualTo(200);
        while (i % 2 == 1 && get("/models").json().findValues("texts").get(1).asLong() == 0) {
          LockSupport.parkNanos(1_000_000);
        }
      }
      done.set(true);
      for (Future<?> client : running) {
        client.get();
      }
      assertThat(seen).contains(200).isSubsetOf(200, 404, 503);
    } finally {
      clients.shutdownNow();
    }
  }

  @Test
  void closesUnderLoadAndTwice() throws Exception {
    InferenceServer other = new InferenceServer();
    int port = other.start(new ServerArguments(0, true, false));
    ExecutorService clients = Executors.newFixedThreadPool(4);
    try {
      List<Future<Integer>> last = new ArrayList<>();
      CountDownLatch started = new CountDownLatch(4);
      for (int i = 0; i < 4; i++) {
        last.add(clients.submit(() -> lastStatus(port, started)));
      }
      started.await(); // each client has received an answer
      other.close();
      other.close();
      for (Future<Integer> status : last) {
        assertThat(status.get()).isIn(200, 503, 0);
      }
    } finally {
      clients.shutdownNow();
    }
  }

  /** {@return the status of the last answer to a client that sends requests until it is refused} */
  private static int lastStatus(int port, CountDownLatch started) throws InterruptedException {
    int status = 0;
    try {
      while (true) {
        HttpRequest request =
            HttpRequest.newBuilder(URI.create("http://127.0.0.1:" + port + "/embed"))
                .timeout(Duration.ofSeconds(20))
                .POST(HttpRequest.BodyPublishers.ofString(TEXT))
                .build();
        status = CLIENT.send(request, HttpResponse.BodyHandlers.discarding()).statusCode();
        started.countDown();
      }
    } catch (IOException e) {
      return status;
    }
  }
}
