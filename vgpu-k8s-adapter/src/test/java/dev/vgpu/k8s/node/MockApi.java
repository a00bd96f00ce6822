package dev.vgpu.k8s.node;

import static java.nio.charset.StandardCharsets.UTF_8;

import io.fabric8.kubernetes.client.KubernetesClient;
import io.fabric8.kubernetes.client.server.mock.KubernetesCrudDispatcher;
import io.fabric8.kubernetes.client.server.mock.KubernetesMockServer;
import io.fabric8.mockwebserver.Context;
import io.fabric8.mockwebserver.MockWebServer;
import io.fabric8.mockwebserver.http.Buffer;
import io.fabric8.mockwebserver.http.MockResponse;
import io.fabric8.mockwebserver.http.RecordedRequest;
import java.util.HashMap;
import java.util.Map;
import java.util.Queue;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.function.UnaryOperator;
import java.util.logging.Level;
import java.util.logging.Logger;

/** fabric8's mock API server, which stores what it is given. */
public final class MockApi implements AutoCloseable {
  /** Referenced, because loggers without a reference are collected, and lose their level. */
  private static final Logger LOGGER = Logger.getLogger("io.fabric8.mockwebserver");

  private static final UnaryOperator<String> UNCHANGED = UnaryOperator.identity();

  /** Requests wait for it. */
  private volatile CountDownLatch back = new CountDownLatch(0);

  /** Whether requests are refused instead of waiting. */
  private volatile boolean isRefusing;

  /** How many requests were not answered at once. */
  final AtomicInteger unserved = new AtomicInteger();

  private final Queue<String> waiting = new ConcurrentLinkedQueue<>();

  /** So many requests that change something are answered with a conflict. */
  public final AtomicInteger conflicts = new AtomicInteger();

  /** The status with which requests are answered whose path has this text. */
  public final Map<String, Integer> missing = new ConcurrentHashMap<>();

  /** How many requests were answered so. */
  final AtomicInteger missed = new AtomicInteger();

  /** Objects with this text in them are invalid; empty for none. */
  public volatile String invalid = "";

  /** Whether a request for a path that ends so was not answered at once. */
  boolean isAsked(String path) {
    return waiting.stream().anyMatch(one -> one.endsWith(path));
  }

  private final class Dispatcher extends KubernetesCrudDispatcher {
    @Override
    public MockResponse dispatch(RecordedRequest request) {
      if (back.getCount() > 0) {
        unserved.incrementAndGet();
        waiting.add(request.getPath());
        if (isRefusing) {
          return new MockResponse().setResponseCode(503);
        }
        try {
          back.await();
        } catch (InterruptedException e) {
          return new MockResponse().setResponseCode(503);
        }
      }
      if (conflicts.get() > 0
          && !request.method().toString().equals("GET")
          && conflicts.getAndDecrement() > 0) {
        return new MockResponse().setResponseCode(409);
      }
      for (Map.Entry<String, Integer> one : missing.entrySet()) {
        if (request.getPath().contains(one.getKey())) {
          missed.incrementAndGet();
          return new MockResponse().setResponseCode(one.getValue());
        }
      }
      if (bodies == UNCHANGED && invalid.isEmpty()) {
        return super.dispatch(request);
      }
      String changed = bodies.apply(request.getUtf8Body()); // which can be read once
      if (!invalid.isEmpty() && changed.contains(invalid)) {
        return new MockResponse().setResponseCode(422);
      }
      return super.dispatch(
          new RecordedRequest(
              request.getHttpVersion(),
              request.method(),
              request.getPath(),
              request.getHeaders(),
              new Buffer(changed.getBytes(UTF_8))));
    }
  }

  /** What it does to the objects that it is sent. */
  private final UnaryOperator<String> bodies;

  private final KubernetesMockServer server =
      new KubernetesMockServer(
          new Context(), new MockWebServer(), new HashMap<>(), new Dispatcher(), false);

  /** Starts it. */
  public MockApi() {
    this(UNCHANGED);
  }

  /** Starts one that changes the objects that it is sent. */
  public MockApi(UnaryOperator<String> bodies) {
    this.bodies = bodies;
    LOGGER.setLevel(Level.WARNING);
    server.init();
  }

  /** Creates a client, which the caller closes. */
  public KubernetesClient client() {
    return server.createClient();
  }

  /** Keeps its state, and answers no request until it is back. */
  void goAway() {
    goAway(false);
  }

  /** Keeps its state, and lets requests wait, or refuses them, until it is back. */
  void goAway(boolean isRefusing) {
    this.isRefusing = isRefusing;
    back = new CountDownLatch(1);
  }

  void comeBack() {
    back.countDown();
  }

  String url() {
    return server.url("/");
  }

  @Override
  public void close() {
    comeBack();
    end(server);
  }

  /**
   * Ends a mock API server. If a watch is just closing, the server ends later: its event loop then
   * waits up to 30 s for a thread of its own.
   */
  public static void end(KubernetesMockServer server) {
    try {
      server.destroy();
    } catch (IllegalStateException e) {
      LOGGER.log(Level.INFO, "the mock API server ends later", e);
    }
  }
}
