package dev.vgpu.bench.demo;

import static java.nio.charset.StandardCharsets.UTF_8;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import com.sun.net.httpserver.HttpExchange;
import com.sun.net.httpserver.HttpServer;
import dev.vgpu.bench.demo.figure.Span;
import dev.vgpu.cli.time.NanoClock;
import java.io.IOException;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.Executors;

/**
 * Speaks the sample server's protocol, with a device that only sleeps: 1 ms for each text, one call
 * after the other. Offline tenants divide the remaining time in proportion to their shares.
 */
public final class StubServer {
  private static final ObjectMapper JSON = new ObjectMapper();
  private static final long TEXT_NS = 1_000_000;

  private final NanoClock clock = NanoClock.system();
  private final Device device = new Device(clock);
  private Running running = new Running(JSON.createObjectNode(), List.of(), 0);

  /** The current phase. */
  private record Running(ObjectNode request, List<Tenant> tenants, long startNs) {}

  /** Runs the server until it is killed. */
  public static void main(String[] args) throws IOException {
    HttpServer http =
        HttpServer.create(new InetSocketAddress(InetAddress.getLoopbackAddress(), 0), 0);
    http.setExecutor(
        Executors.newCachedThreadPool(
            task -> {
              Thread thread = new Thread(task, "stub");
              thread.setDaemon(true);
              return thread;
            }));
    StubServer server = new StubServer();
    http.createContext("/", server::answer);
    http.start();
    System.out.println("listening on http://127.0.0.1:" + http.getAddress().getPort());
  }

  private void answer(HttpExchange exchange) throws IOException {
    try (exchange) {
      byte[] body = exchange.getRequestBody().readAllBytes();
      JsonNode request = body.length == 0 ? JSON.createObjectNode() : JSON.readTree(body);
      byte[] answer;
      int status = 200;
      try {
        answer = route(exchange.getRequestMethod(), exchange.getRequestURI().getPath(), request);
      } catch (InterruptedException | IllegalArgumentException e) {
        status = 400;
        answer = "{\"error\":\"no\"}".getBytes(UTF_8);
      }
      exchange.sendResponseHeaders(status, answer.length);
      exchange.getResponseBody().write(answer);
    }
  }

  private byte[] route(String method, String path, JsonNode request) throws InterruptedException {
    ObjectNode answer = JSON.createObjectNode();
    if (path.equals("/demo/phase")) {
      if (method.equals("POST")) {
        begin((ObjectNode) request);
      }
      describe(answer);
    } else if (path.equals("/demo/calibrate")) {
      answer.put("medianNs", TEXT_NS * request.path("texts").size());
    } else if (path.endsWith("/embed")) {
      String name = path.equals("/embed") ? "online" : path.split("/", -1)[2];
      embed(name, request.path("texts").size());
      ArrayNode vectors = answer.putArray("vectors");
      request.path("texts").forEach(text -> vectors.addArray().add(0.5));
    }
    return answer.toString().getBytes(UTF_8);
  }

  private void embed(String name, int texts) throws InterruptedException {
    Tenant tenant =
        current().tenants().stream()
            .filter(t -> t.name.equals(name))
            .findFirst()
            .orElseThrow(() -> new IllegalArgumentException(name));
    device.use(tenant, texts * TEXT_NS, texts);
  }

  private synchronized Running current() {
    return running;
  }

  private synchronized void begin(ObjectNode request) {
    running.tenants().forEach(tenant -> tenant.stopped = true);
    List<Tenant> tenants = new ArrayList<>();
    request.path("models").forEach(model -> tenants.add(new Tenant(tenants.size(), model)));
    request.path("offline").forEach(job -> tenants.add(new Tenant(tenants.size(), job)));
    running = new Running(request, tenants, clock.nowNs());
    device.begin(tenants, running.startNs());
    for (Tenant tenant : tenants) {
      if (!tenant.online) {
        for (int i = 0; i < 2; i++) {
          Thread worker = new Thread(() -> work(tenant), "offline");
          worker.setDaemon(true);
          worker.start();
        }
      }
    }
  }

  private void work(Tenant tenant) {
    try {
      while (!tenant.stopped) {
        device.use(tenant, 8 * TEXT_NS, 32);
      }
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
    }
  }

  private synchronized void describe(ObjectNode answer) {
    answer.put("name", running.request().path("name").asText());
    answer.put("sharing", running.request().path("sharing").asText());
    answer.put("elapsedNs", clock.nowNs() - running.startNs());
    ArrayNode list = answer.putArray("tenants");
    ArrayNode spans = answer.putArray("spans");
    synchronized (device) {
      for (Tenant tenant : running.tenants()) {
        list.addObject()
            .put("name", tenant.name)
            .put("percent", tenant.percent)
            .put("items", tenant.items)
            .put("calls", tenant.items)
            .put("memoryPeakBytes", 100L << 20)
            .put("quotaBytes", 256L << 20);
      }
      device.spans.forEach(
          span -> spans.addArray().add(span.tenant()).add(span.startNs()).add(span.endNs()));
    }
  }

  /** A model or a job. */
  private static final class Tenant {
    private final int index;
    private final String name;
    private final int percent;
    private final boolean online;
    private volatile boolean stopped;
    private long items;
    private double usedNs;
    private int waiting;

    Tenant(int index, JsonNode json) {
      this.index = index;
      this.name = json.path("name").asText();
      this.percent = json.path("percent").asInt();
      this.online = json.path("class").asText().equals("ONLINE");
    }

    double claim() {
      return (online ? -1e18 : 0) + usedNs / Math.max(1, percent);
    }
  }

  /** Runs one call at a time: online first, then the tenant with the least for its share. */
  private static final class Device {
    private final NanoClock clock;
    private final List<Span> spans = new ArrayList<>();
    private List<Tenant> tenants = List.of();
    private long startNs;
    private boolean busy;

    Device(NanoClock clock) {
      this.clock = clock;
    }

    synchronized void begin(List<Tenant> next, long atNs) {
      tenants = next;
      startNs = atNs;
      spans.clear();
    }

    void use(Tenant tenant, long lengthNs, int items) throws InterruptedException {
      synchronized (this) {
        tenant.waiting++;
        while (busy || !isNext(tenant)) {
          wait(100);
        }
        tenant.waiting--;
        busy = true;
      }
      long fromNs = clock.nowNs();
      clock.sleepUntil(fromNs + lengthNs);
      synchronized (this) {
        busy = false;
        long toNs = clock.nowNs();
        tenant.items += items;
        tenant.usedNs += toNs - fromNs;
        if (!tenant.stopped && fromNs >= startNs) {
          spans.add(new Span(tenant.index, fromNs - startNs, toNs - startNs));
        }
        notifyAll();
      }
    }

    private boolean isNext(Tenant tenant) {
      return tenants.stream()
          .noneMatch(
              other -> other != tenant && other.waiting > 0 && other.claim() < tenant.claim());
    }
  }
}
