package dev.vgpu.dashboard;

import static java.nio.charset.StandardCharsets.UTF_8;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import dev.vgpu.CallOptions;
import dev.vgpu.GpuPool;
import dev.vgpu.GpuPoolOptions;
import dev.vgpu.VirtualGpu;
import dev.vgpu.request.MemorySize;
import dev.vgpu.request.VirtualGpuRequest;
import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStream;
import java.io.InputStreamReader;
import java.io.OutputStream;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.Socket;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.locks.LockSupport;
import java.util.function.LongSupplier;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;

/** The dashboard over HTTP, with a real pool used by this JVM only. */
class DashboardTest {
  private static final ObjectMapper JSON = new ObjectMapper();
  private static final Duration FAST = Duration.ofMillis(20);
  private static final List<String> FILES =
      List.of("/", "/page.js", "/views.js", "/parts.js", "/charts.js", "/style.css", "/icon.svg");
  private static final MemorySize QUOTA = MemorySize.ofMebibytes(1);

  /** A whole quota, so that two such calls of a tenant do not run at once. */
  private static final CallOptions ALL = CallOptions.ofMemory(QUOTA);

  private final HttpClient client = HttpClient.newHttpClient();
  private final List<Dashboard> opened = new ArrayList<>();
  private GpuPool pool;

  @BeforeEach
  void open() {
    pool = GpuPool.open(GpuPoolOptions.builder().scope(GpuPoolOptions.Scope.THIS_JVM).build());
  }

  @AfterEach
  void close() {
    opened.forEach(Dashboard::close);
    pool.close();
  }

  private Dashboard serve(DashboardOptions.Builder builder) throws IOException {
    Dashboard dashboard = Dashboard.open(pool, builder.build());
    opened.add(dashboard);
    return dashboard;
  }

  private Dashboard serve() throws IOException {
    return serve(options().interval(FAST));
  }

  private static DashboardOptions.Builder options() {
    return DashboardOptions.builder().address(WebAddress.fromString("127.0.0.1:0"));
  }

  /** As after a pause of the process: the pool is not looked at again and again at once. */
  @Test
  void looksThatWereMissedAreNotMadeUpFor() throws Exception {
    List<Long> beganNs = new CopyOnWriteArrayList<>();
    LongSupplier slowOnce =
        () -> {
          long nowNs = NanoClock.nowNs();
          beganNs.add(nowNs);
          while (beganNs.size() == 2 && NanoClock.nowNs() - nowNs < 10 * FAST.toNanos()) {
            Thread.onSpinWait();
          }
          return nowNs;
        };
    DashboardOptions fast = options().interval(FAST).build();
    opened.add(Dashboard.open(pool, fast, slowOnce, NanoClock::now));
    while (beganNs.size() < 6) {
      assertThat(Thread.interrupted()).as("the test's time is over").isFalse();
      LockSupport.parkNanos(100_000);
    }
    for (int i = 2; i < 6; i++) {
      assertThat(beganNs.get(i) - beganNs.get(i - 1)).isGreaterThanOrEqualTo(FAST.toNanos());
    }
  }

  private static HttpRequest.Builder request(Dashboard dashboard, String path) {
    return HttpRequest.newBuilder(URI.create("http://" + dashboard.address().inUrl() + path));
  }

  private HttpResponse<String> get(Dashboard dashboard, String path, String... headers)
      throws Exception {
    HttpRequest.Builder request = request(dashboard, path);
    if (headers.length > 0) {
      request.headers(headers);
    }
    return client.send(request.build(), HttpResponse.BodyHandlers.ofString());
  }

  /** Sends a request that no library would send; returns the beginning of the answer. */
  private static String raw(Dashboard dashboard, String text) throws IOException {
    try (Socket socket = connect(dashboard)) {
      socket.getOutputStream().write(text.getBytes(UTF_8));
      String line = reader(socket).readLine();
      return line == null ? "" : line;
    }
  }

  private static Socket connect(Dashboard dashboard) throws IOException {
    Socket socket = new Socket(InetAddress.getLoopbackAddress(), dashboard.address().port());
    socket.setSoTimeout(30_000);
    return socket;
  }

  private static BufferedReader reader(Socket socket) throws IOException {
    return new BufferedReader(new InputStreamReader(socket.getInputStream(), UTF_8));
  }

  private BufferedReader watch(Dashboard dashboard) throws Exception {
    HttpResponse<InputStream> response =
        client.send(
            request(dashboard, "/events").build(), HttpResponse.BodyHandlers.ofInputStream());
    assertThat(response.statusCode()).isEqualTo(200);
    return new BufferedReader(new InputStreamReader(response.body(), UTF_8));
  }

  /** Sends a request for events, and reads nothing. */
  private static void askToWatch(Socket socket) throws IOException {
    socket
        .getOutputStream()
        .write("GET /events HTTP/1.1\r\nHost: localhost\r\n\r\n".getBytes(UTF_8));
  }

  private static JsonNode next(BufferedReader reader, String event) throws IOException {
    for (String line = reader.readLine(); line != null; line = reader.readLine()) {
      if (line.equals("event: " + event)) {
        return JSON.readTree(reader.readLine().substring("data: ".length()));
      }
    }
    throw new IOException("the stream has ended");
  }

  @ParameterizedTest
  @ValueSource(
      strings = {
        "/",
        "/page.js",
        "/views.js",
        "/parts.js",
        "/charts.js",
        "/style.css",
        "/icon.svg"
      })
  void pageIsServedWithoutAnythingFromElsewhere(String path) throws Exception {
    HttpResponse<String> response = get(serve(), path);
    assertThat(response.statusCode()).isEqualTo(200);
    assertThat(response.body().replace("http://www.w3.org/2000/svg", ""))
        .doesNotContain("http:", "https:", "//cdn", "innerHTML", "eval(", " style=", "onclick=");
    assertThat(response.headers().firstValue("Content-Security-Policy").orElseThrow())
        .contains("default-src 'none'", "script-src 'self'", "frame-ancestors 'none'")
        .doesNotContain("unsafe-inline");
    assertThat(response.headers().firstValue("X-Content-Type-Options")).contains("nosniff");
  }

  @Test
  void pageIsSmall() throws Exception {
    Dashboard dashboard = serve();
    int bytes = 0;
    for (String file : FILES) {
      HttpResponse<byte[]> response =
          client.send(
              request(dashboard, file).header("Accept-Encoding", "gzip").build(),
              HttpResponse.BodyHandlers.ofByteArray());
      assertThat(response.headers().firstValue("Content-Encoding")).contains("gzip");
      bytes += response.body().length;
    }
    System.out.printf(Locale.ROOT, "the dashboard's page: %.1f KiB gzipped%n", bytes / 1024.0);
    assertThat(bytes).isBetween(1, 200 << 10);
  }

  @ParameterizedTest
  @CsvSource({
    "GET / HTTP/1.1\\r\\nHost: evil.example, 421",
    "GET /events HTTP/1.1\\r\\nHost: evil.example:80, 421",
    "GET / HTTP/1.0\\r\\nX: y, 421",
    "GET /nothing HTTP/1.1\\r\\nHost: localhost, 404",
    "GET /../page.js HTTP/1.1\\r\\nHost: localhost, 404",
    "GET /%2e%2e/VgpuCommand.class HTTP/1.1\\r\\nHost: localhost, 404",
    "POST / HTTP/1.1\\r\\nHost: localhost\\r\\nContent-Length: 0, 405",
    "DELETE /events HTTP/1.1\\r\\nHost: localhost, 405",
    "HEAD / HTTP/1.1\\r\\nHost: localhost, 200",
    "HEAD /events HTTP/1.1\\r\\nHost: localhost, 200",
    "GET /events HTTP/1.1\\r\\nHost: localhost\\r\\nSec-Fetch-Site: cross-site, 403",
  })
  void answersOnlyWhatItShould(String request, int status) throws Exception {
    assertThat(raw(serve(), request.replace("\\r\\n", "\r\n") + "\r\n\r\n"))
        .startsWith("HTTP/1.1 " + status);
  }

  @Test
  void spaceAroundATokenDoesNotCount() {
    assertThat(Token.of(" sixteen characters\n").text()).isEqualTo("sixteen characters");
    assertThatThrownBy(() -> Token.of("fifteen signs..\n"))
        .isInstanceOf(IllegalArgumentException.class)
        .hasMessageContaining("15");
  }

  @Test
  void tokenIsNeededForAllThatTellsSomething() throws Exception {
    Token token = Token.random();
    Dashboard dashboard = serve(options().token(token));
    assertThat(get(dashboard, "/").statusCode()).isEqualTo(303);
    for (String path : List.of("/events", "/page.js", "/nothing")) {
      assertThat(get(dashboard, path).statusCode()).isEqualTo(401);
      assertThat(get(dashboard, path, "Authorization", "Bearer " + token.text() + "0").statusCode())
          .isEqualTo(401);
    }
    assertThat(get(dashboard, "/", "Authorization", "Bearer " + token.text()).statusCode())
        .isEqualTo(200);
    assertThat(get(dashboard, "/login").body()).contains("name=\"token\"");
  }

  @Test
  void loginGivesACookieForTheRightTokenAlone() throws Exception {
    Token token = Token.of("a token with spaces & signs\n");
    Dashboard dashboard = serve(options().token(token));
    HttpResponse<String> wrong = login(dashboard, "token=something+else+that+is+long");
    assertThat(wrong.statusCode()).isEqualTo(401);
    assertThat(wrong.body()).contains("not the token");
    assertThat(login(dashboard, "x".repeat(10_000)).statusCode()).isEqualTo(401);
    HttpResponse<String> right = login(dashboard, "token=a+token+with+spaces+%26+signs");
    assertThat(right.statusCode()).isEqualTo(303);
    String cookie = right.headers().firstValue("Set-Cookie").orElseThrow();
    assertThat(cookie).contains("HttpOnly", "SameSite=Strict").doesNotContain("spaces");
    String kept = cookie.substring(0, cookie.indexOf(';'));
    assertThat(get(dashboard, "/", "Cookie", "other=1; " + kept).statusCode()).isEqualTo(200);
    assertThat(get(dashboard, "/", "Cookie", kept + "0").statusCode()).isEqualTo(303);
  }

  private HttpResponse<String> login(Dashboard dashboard, String body) throws Exception {
    return client.send(
        request(dashboard, "/login").POST(HttpRequest.BodyPublishers.ofString(body)).build(),
        HttpResponse.BodyHandlers.ofString());
  }

  @Test
  void watchersAreToldWhoHoldsWhatAndWhoWaits() throws Exception {
    Dashboard dashboard = serve();
    CountDownLatch end = new CountDownLatch(1);
    try (VirtualGpu gpu = acquire("chat");
        BufferedReader stream = watch(dashboard)) {
      CompletableFuture<Boolean> first = gpu.submit(() -> hold(end), ALL);
      Await.until(() -> gpu.usage().running() == 1);
      CompletableFuture<Boolean> second = gpu.submit(() -> true, ALL);
      Await.until(() -> gpu.usage().waiting() == 1);
      assertThat(next(stream, "hello").path("history").isObject()).isTrue();
      JsonNode tick = next(stream, "tick");
      while (!tick.path("tenants").path(0).has("wait")
          || tick.path("tenants").path(0).path("held").isNull()) {
        tick = next(stream, "tick");
      }
      JsonNode tenant = tick.path("tenants").path(0);
      assertThat(tenant.path("id").asText()).isEqualTo(gpu.id());
      assertThat(tenant.path("held").asDouble()).isPositive();
      assertThat(tenant.path("entitled").asDouble()).isEqualTo(100);
      assertThat(tenant.path("wait").path("why").asText()).isNotEmpty();
      assertThat(tenant.path("waits").path("waiting_looks").asLong()).isPositive();
      // Nothing counts what calls in a JVM allocate and copy, so it is null, not 0.
      for (String uncounted : List.of("used", "denied", "copy")) {
        assertThat(tenant.path(uncounted).isNull()).as(uncounted).isTrue();
      }
      assertThat(tick.path("gpus").path(0).path("id").asText()).isNotEmpty();
      end.countDown();
      CompletableFuture.allOf(first, second).get(30, TimeUnit.SECONDS);
    } finally {
      end.countDown();
    }
  }

  private static boolean hold(CountDownLatch end) throws InterruptedException {
    return end.await(50, TimeUnit.SECONDS);
  }

  private VirtualGpu acquire(String name) {
    return pool.acquire(VirtualGpuRequest.builder().name(name).memory(QUOTA).build());
  }

  @Test
  void lookThatFailsIsToldAndIsNotTheLast() throws Exception {
    AtomicBoolean isBlind = new AtomicBoolean();
    LongSupplier clock =
        () -> {
          if (isBlind.get()) {
            throw new AssertionError("nobody answers");
          }
          return NanoClock.nowNs();
        };
    DashboardOptions fast = options().interval(FAST).build();
    Dashboard dashboard = Dashboard.open(pool, fast, clock, NanoClock::now);
    opened.add(dashboard);
    try (BufferedReader stream = watch(dashboard)) {
      next(stream, "tick");
      isBlind.set(true);
      assertThat(next(stream, "unknown").path("why").asText()).isEqualTo("nobody answers");
      isBlind.set(false);
      assertThat(next(stream, "tick").path("look").isNumber()).isTrue();
    }
  }

  @Test
  void nobodyMayWatchAnyMoreOnceItIsClosed() {
    Viewers viewers = new Viewers(2);
    assertThat(viewers.add(new Viewer(OutputStream.nullOutputStream()))).isTrue();
    viewers.close();
    assertThat(viewers.add(new Viewer(OutputStream.nullOutputStream()))).isFalse();
  }

  /** The names of tenants are checked; models and reasons are other people's text. */
  @Test
  void markupInTextIsTextOfOneMessage() throws Exception {
    GpuPool own = SimulatedGpu.pool(1);
    DashboardOptions hostile =
        options().mig(() -> "{\"unknown\":\n\"<b>\\n\\ndata: x\"\r\n}").build();
    try (own;
        Dashboard dashboard = Dashboard.open(own, hostile);
        BufferedReader stream = watch(dashboard)) {
      JsonNode tick = next(stream, "tick");
      assertThat(tick.path("gpus").path(0).path("model").asText()).isEqualTo(SimulatedGpu.MODEL);
      assertThat(tick.path("mig").path("unknown").asText()).isEqualTo("<b>\n\ndata: x");
    }
  }

  @Test
  void nameThatIsNoAddressHereIsAnError() {
    DashboardOptions.Builder nowhere =
        options().address(new WebAddress("nobody.invalid", 0)).token(Token.random());
    assertThatThrownBy(() -> serve(nowhere))
        .isInstanceOf(IOException.class)
        .hasMessageContaining("nobody.invalid");
  }

  @Test
  void eventsAreToldOnce() throws Exception {
    acquire("before").close();
    Dashboard dashboard = serve();
    try (BufferedReader stream = watch(dashboard)) {
      assertThat(next(stream, "hello").path("events").findValuesAsText("kind"))
          .containsOnlyOnce("Acquired", "Closed");
      acquire("later").close();
      List<String> kinds = new ArrayList<>();
      while (!kinds.contains("Closed")) {
        kinds.addAll(next(stream, "tick").path("events").path("list").findValuesAsText("kind"));
      }
      assertThat(kinds).containsOnlyOnce("Acquired", "Closed");
    }
  }

  @Test
  void noMoreWatchThanMayAndThePlacesOfThoseWhoVanishAreFree() throws Exception {
    Dashboard dashboard = serve(options().interval(FAST).mostViewers(2));
    Socket one = connect(dashboard);
    askToWatch(one);
    BufferedReader other = watch(dashboard);
    Await.until(() -> dashboard.viewers() == 2);
    HttpResponse<String> third = get(dashboard, "/events");
    assertThat(third.statusCode()).isEqualTo(503);
    assertThat(third.headers().firstValue("Retry-After")).isPresent();
    one.setSoLinger(true, 0);
    one.close();
    other.close();
    Await.until(() -> dashboard.viewers() == 0);
    try (BufferedReader again = watch(dashboard)) {
      assertThat(next(again, "tick").path("look").isNumber()).isTrue();
    }
  }

  /** Its connection fills up. Others still get messages, and its place is free after a while. */
  @Test
  void watcherWhoTakesNothingHoldsUpNobodyAndIsEnded() throws Exception {
    Dashboard dashboard = serve(options().interval(FAST));
    List<VirtualGpu> many = new ArrayList<>();
    for (int i = 0; i < 40; i++) {
      many.add(acquire("t" + i));
    }
    try (Socket slow = new Socket();
        BufferedReader stream = watch(dashboard)) {
      slow.setReceiveBufferSize(4096);
      slow.connect(
          new InetSocketAddress(InetAddress.getLoopbackAddress(), dashboard.address().port()));
      askToWatch(slow);
      Await.until(() -> dashboard.viewers() == 2);
      while (dashboard.viewers() == 2) {
        next(stream, "tick");
      }
      assertThat(dashboard.viewers()).isEqualTo(1);
      next(stream, "tick");
    }
    many.forEach(VirtualGpu::close);
  }

  @Test
  void tenThousandRequestsLeaveNothing() throws Exception {
    Dashboard dashboard = serve();
    int batch = 100;
    for (int done = 0; done < 10_000; done += batch) {
      List<CompletableFuture<Integer>> answers = new ArrayList<>();
      for (int i = 0; i < batch; i++) {
        HttpRequest request = request(dashboard, i % 2 == 0 ? "/" : "/nothing").build();
        answers.add(
            client
                .sendAsync(request, HttpResponse.BodyHandlers.discarding())
                .thenApply(HttpResponse::statusCode));
      }
      for (CompletableFuture<Integer> answer : answers) {
        assertThat(answer.get(60, TimeUnit.SECONDS)).isIn(200, 404);
      }
    }
    assertThat(dashboard.viewers()).isZero();
    assertThat(get(dashboard, "/").statusCode()).isEqualTo(200);
  }

  @Test
  void requestsThatNeverEndHoldUpNobody() throws Exception {
    Dashboard dashboard = serve();
    List<Socket> half = new ArrayList<>();
    try {
      for (int i = 0; i < 200; i++) {
        Socket socket = connect(dashboard);
        half.add(socket);
        String text =
            i % 2 == 0
                ? "GET / HTTP/1.1\r\nHost: loc"
                : "POST /login HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100\r\n\r\ntok";
        socket.getOutputStream().write(text.getBytes(UTF_8));
      }
      assertThat(raw(dashboard, "GET / HTTP/1.1\r\nHost: localhost\r\n\r\n"))
          .startsWith("HTTP/1.1 200");
    } finally {
      for (Socket socket : half) {
        socket.close();
      }
    }
  }
}
