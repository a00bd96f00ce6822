package dev.vgpu.dashboard;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.IOException;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.WebSocket;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Base64;
import java.util.Comparator;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionStage;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.TimeUnit;
import java.util.stream.Stream;

/** A headless browser, controlled over the DevTools protocol. Confined to one thread. */
final class Chromium implements AutoCloseable {
  private static final ObjectMapper JSON = new ObjectMapper();
  private static final long TIMEOUT_SECONDS = 60;

  private final Path directory;
  private final Process process;
  private final WebSocket socket;
  private final Map<Integer, CompletableFuture<JsonNode>> answers = new ConcurrentHashMap<>();
  private String session = "";
  private int last;

  Chromium(String program) throws Exception {
    directory = Files.createTempDirectory("vgpu-chromium");
    process =
        new ProcessBuilder(
                program,
                "--headless=new",
                "--no-sandbox",
                "--disable-gpu",
                "--disable-dev-shm-usage",
                "--enable-precise-memory-info",
                "--js-flags=--expose-gc",
                "--remote-debugging-port=0",
                "--user-data-dir=" + directory,
                "about:blank")
            .redirectErrorStream(true)
            .redirectOutput(directory.resolve("log").toFile())
            .start();
    socket =
        HttpClient.newHttpClient()
            .newWebSocketBuilder()
            .buildAsync(URI.create(debugger()), new Answers())
            .get(TIMEOUT_SECONDS, TimeUnit.SECONDS);
    String page =
        call("Target.createTarget", Map.of("url", "about:blank")).path("targetId").asText();
    session =
        call("Target.attachToTarget", Map.of("targetId", page, "flatten", true))
            .path("sessionId")
            .asText();
    call("Page.enable", Map.of());
  }

  private String debugger() throws IOException, InterruptedException {
    Path file = directory.resolve("DevToolsActivePort");
    long endNs = NanoClock.nowNs() + TimeUnit.SECONDS.toNanos(TIMEOUT_SECONDS);
    while (!Files.exists(file) || Files.readAllLines(file).size() < 2) {
      if (!process.isAlive() || NanoClock.nowNs() > endNs) {
        throw new IllegalStateException(Files.readString(directory.resolve("log")));
      }
      Await.pause(50);
    }
    List<String> lines = Files.readAllLines(file);
    return "ws://127.0.0.1:" + lines.get(0) + lines.get(1);
  }

  /** Assembles messages from their fragments, and completes the calls that wait for them. */
  private final class Answers implements WebSocket.Listener {
    private final StringBuilder text = new StringBuilder();

    @Override
    public CompletionStage<?> onText(WebSocket from, CharSequence data, boolean isLast) {
      text.append(data);
      if (isLast) {
        try {
          JsonNode answer = JSON.readTree(text.toString());
          CompletableFuture<JsonNode> asked = answers.remove(answer.path("id").asInt());
          if (asked != null) {
            asked.complete(answer);
          }
        } catch (IOException e) {
          throw new java.io.UncheckedIOException(e);
        } finally {
          text.setLength(0);
        }
      }
      from.request(1);
      return CompletableFuture.completedFuture(null);
    }
  }

  /** Calls a method of the protocol, and returns its result. */
  JsonNode call(String method, Map<String, Object> parameters) throws Exception {
    ObjectNode request = JSON.createObjectNode().put("id", ++last).put("method", method);
    request.set("params", JSON.valueToTree(parameters));
    if (!session.isEmpty()) {
      request.put("sessionId", session);
    }
    CompletableFuture<JsonNode> answer = new CompletableFuture<>();
    answers.put(last, answer);
    socket.sendText(request.toString(), true).get(TIMEOUT_SECONDS, TimeUnit.SECONDS);
    JsonNode result = answer.get(TIMEOUT_SECONDS, TimeUnit.SECONDS);
    if (result.has("error")) {
      throw new IllegalStateException(method + ": " + result.path("error"));
    }
    return result.path("result");
  }

  /** The value of an expression in the page; waits for a promise. */
  JsonNode evaluate(String expression) throws Exception {
    JsonNode result =
        call(
            "Runtime.evaluate",
            Map.of("expression", expression, "returnByValue", true, "awaitPromise", true));
    if (result.has("exceptionDetails")) {
      throw new IllegalStateException(expression + ": " + result.path("exceptionDetails"));
    }
    return result.path("result").path("value");
  }

  /** Waits until an expression is true in the page. */
  void await(String expression) throws Exception {
    long endNs = NanoClock.nowNs() + TimeUnit.SECONDS.toNanos(TIMEOUT_SECONDS);
    while (!evaluate("Boolean(" + expression + ")").asBoolean()) {
      if (NanoClock.nowNs() > endNs) {
        throw new IllegalStateException(
            "never: " + expression + "; the page says: " + evaluate("document.body.innerText"));
      }
      Await.pause(20);
    }
  }

  void open(String url) throws Exception {
    call("Page.navigate", Map.of("url", url));
  }

  /** Presses a key, Tab or Enter. */
  void key(String name) throws Exception {
    boolean isEnter = name.equals("Enter");
    Map<String, Object> key =
        Map.of(
            "key",
            name,
            "code",
            name,
            "windowsVirtualKeyCode",
            isEnter ? 13 : 9,
            "text",
            isEnter ? "\r" : "");
    for (String type : List.of("keyDown", "keyUp")) {
      Map<String, Object> event = new HashMap<>(key);
      event.put("type", type);
      call("Input.dispatchKeyEvent", event);
    }
  }

  void size(int width, int height) throws Exception {
    call(
        "Emulation.setDeviceMetricsOverride",
        Map.of("width", width, "height", height, "deviceScaleFactor", 1, "mobile", width < 600));
  }

  void theme(String name) throws Exception {
    call(
        "Emulation.setEmulatedMedia",
        Map.of("features", List.of(Map.of("name", "prefers-color-scheme", "value", name))));
  }

  void screenshot(Path file) throws Exception {
    JsonNode image = call("Page.captureScreenshot", Map.of("format", "png"));
    Files.write(file, Base64.getDecoder().decode(image.path("data").asText()));
  }

  @Override
  public void close() throws IOException {
    process.descendants().forEach(ProcessHandle::destroyForcibly);
    process.destroyForcibly().onExit().join();
    try (Stream<Path> files = Files.walk(directory)) {
      files.sorted(Comparator.reverseOrder()).forEach(path -> path.toFile().delete());
    }
  }
}
