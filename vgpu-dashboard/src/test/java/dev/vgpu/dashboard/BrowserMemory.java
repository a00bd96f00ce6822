package dev.vgpu.dashboard;

import static java.nio.charset.StandardCharsets.UTF_8;

import com.sun.net.httpserver.HttpExchange;
import com.sun.net.httpserver.HttpServer;
import dev.vgpu.GpuCapacityException;
import dev.vgpu.GpuPool;
import dev.vgpu.VirtualGpu;
import dev.vgpu.dashboard.PageFiles.PageFile;
import dev.vgpu.dashboard.http.RequestThreads;
import dev.vgpu.request.MemorySize;
import dev.vgpu.request.VirtualGpuRequest;
import java.io.IOException;
import java.io.OutputStream;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.time.Instant;
import java.time.LocalTime;
import java.time.ZoneId;
import java.time.format.DateTimeFormatter;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Deque;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Optional;
import java.util.concurrent.Semaphore;
import java.util.concurrent.atomic.AtomicLong;
import java.util.stream.IntStream;

/**
 * Checks that the dashboard's page does not grow while it shows eight simulated hours of eight GPUs
 * and 64 tenants that come, go and are refused, and that no text becomes markup. The messages are a
 * real board's, whose clock advances by one second for each. The hours of the second half may not
 * need more than those of the first. Not part of the build, which has no browser. Arguments: the
 * browser's program, and the number of hours, at least 2.
 */
public final class BrowserMemory {
  private static final int GPUS = 8;
  private static final int TENANTS = 64;
  private static final int TICKS_AN_HOUR = 3_600;
  private static final int TICKS_AT_ONCE = 20;
  private static final Instant START = Instant.EPOCH;
  private static final DateTimeFormatter SHOWN_TIME =
      DateTimeFormatter.ofPattern("HH:mm:ss", Locale.ROOT);
  private static final MemorySize QUOTA = MemorySize.ofGibibytes(1);

  /** What collected garbage and caches of the browser may differ by. */
  private static final double MOST_GROWTH = 1.1;

  private record Size(long heap, long nodes, long listeners) {}

  private final GpuPool pool;
  private final Board board;
  private final Deque<VirtualGpu> tenants = new ArrayDeque<>();
  private final PageFiles files = new PageFiles();
  private final Semaphore allowed = new Semaphore(0);
  private final AtomicLong seconds = new AtomicLong();
  private int made;

  private BrowserMemory(GpuPool pool) {
    this.pool = pool;
    this.board =
        new Board(
            pool,
            () -> seconds.get() * 1_000_000_000L,
            () -> START.plusSeconds(seconds.get()),
            () -> "null");
    IntStream.range(0, TENANTS).forEach(i -> come());
  }

  /** Throws an exception that says what grew. */
  public static void main(String[] arguments) throws Exception {
    String program = arguments.length > 0 ? arguments[0] : "chromium";
    int hours = arguments.length > 1 ? Integer.parseInt(arguments[1]) : 8;
    try (GpuPool pool = SimulatedGpu.pool(GPUS);
        RequestThreads threads = new RequestThreads("simulated")) {
      HttpServer server =
          HttpServer.create(new InetSocketAddress(InetAddress.getLoopbackAddress(), 0), 0);
      BrowserMemory simulation = new BrowserMemory(pool);
      server.setExecutor(threads);
      server.createContext("/", simulation::answer);
      server.start();
      try (Chromium browser = new Chromium(program)) {
        simulation.watch(browser, "http://127.0.0.1:" + server.getAddress().getPort(), hours);
      } finally {
        server.stop(0);
      }
    }
  }

  private void come() {
    tenants.add(
        pool.acquire(VirtualGpuRequest.builder().name("tenant-" + made++).memory(QUOTA).build()));
  }

  private void answer(HttpExchange exchange) throws IOException {
    String path = exchange.getRequestURI().getPath();
    if (path.equals("/events")) {
      exchange.getResponseHeaders().set("Content-Type", "text/event-stream; charset=utf-8");
      exchange.sendResponseHeaders(200, 0);
      RequestThreads.daemons("simulated-ticks").newThread(() -> tell(exchange)).start();
      return;
    }
    try (exchange) {
      Optional<PageFile> file = files.at(path);
      byte[] bytes = file.map(PageFile::plain).orElse("none".getBytes(UTF_8));
      exchange.getResponseHeaders().set("Content-Type", file.map(PageFile::type).orElse("text/*"));
      exchange.sendResponseHeaders(file.isPresent() ? 200 : 404, bytes.length);
      exchange.getResponseBody().write(bytes);
    }
  }

  private void tell(HttpExchange exchange) {
    try (exchange;
        OutputStream to = exchange.getResponseBody()) {
      board.look();
      to.write(board.hello());
      while (true) {
        to.flush();
        allowed.acquire();
        live(seconds.incrementAndGet());
        to.write(board.look());
      }
    } catch (IOException | InterruptedException e) {
      System.out.println("the browser has gone: " + e);
    }
  }

  /** What happens in a second. */
  private void live(long second) throws InterruptedException {
    tenants.getLast().run(() -> {});
    if (second % 10 == 0) {
      tenants.removeFirst().close();
      come();
    }
    if (second % 15 == 0) {
      try {
        pool.acquire(
            VirtualGpuRequest.builder()
                .name("too-large-" + second)
                .memory(MemorySize.ofGibibytes(80))
                .build());
        throw new IllegalStateException("granted what no GPU has left");
      } catch (GpuCapacityException e) {
        return; // The page lists the refusal.
      }
    }
  }

  private void watch(Chromium browser, String url, int hours) throws Exception {
    browser.open(url + "/");
    browser.await("document.querySelector('.card table tbody tr')");
    List<Size> sizes = new ArrayList<>();
    for (int hour = 1; hour <= hours; hour++) {
      for (int done = 0; done < TICKS_AN_HOUR; done += TICKS_AT_ONCE) {
        pass(browser);
      }
      for (String page : List.of("#/events", "#/mig", "#/tenant/" + tenants.getLast().id(), "#/")) {
        browser.evaluate("location.hash = '" + page + "'");
        pass(browser);
      }
      Size size = size(browser);
      sizes.add(size);
      System.out.printf(
          Locale.ROOT,
          "after %d h: heap %.2f MiB, %d nodes, %d listeners, %d ticks%n",
          hour,
          size.heap() / 1048576.0,
          size.nodes(),
          size.listeners(),
          seconds.get());
    }
    if (browser
        .evaluate("Boolean(window.wasMarkup || document.querySelector('main img'))")
        .asBoolean()) {
      throw new IllegalStateException("the model of a GPU became markup");
    }
    Size first = largest(sizes.subList(0, hours / 2));
    Size last = largest(sizes.subList(hours / 2, hours));
    if (last.heap() > first.heap() * MOST_GROWTH
        || last.nodes() > first.nodes() * MOST_GROWTH
        || last.listeners() > first.listeners() * MOST_GROWTH) {
      throw new IllegalStateException("the page grew from " + first + " to " + last);
    }
    System.out.println("the page did not grow");
  }

  private static Size largest(List<Size> sizes) {
    return sizes.stream()
        .reduce(
            new Size(0, 0, 0),
            (one, other) ->
                new Size(
                    Math.max(one.heap(), other.heap()),
                    Math.max(one.nodes(), other.nodes()),
                    Math.max(one.listeners(), other.listeners())));
  }

  /** Lets a few seconds pass, and waits until the page shows the last. */
  private void pass(Chromium browser) throws Exception {
    long end = seconds.get() + TICKS_AT_ONCE;
    allowed.release(TICKS_AT_ONCE);
    String time =
        LocalTime.ofInstant(START.plusSeconds(end), ZoneId.systemDefault()).format(SHOWN_TIME);
    // Always the same script: the browser keeps each new one.
    while (!browser
        .evaluate("document.getElementById('clock').textContent")
        .asText()
        .equals(time)) {
      Await.pause(5);
    }
  }

  private static Size size(Chromium browser) throws Exception {
    Map<String, Object> none = Map.of();
    browser.call("HeapProfiler.collectGarbage", none);
    browser.call("HeapProfiler.collectGarbage", none);
    var counters = browser.call("Memory.getDOMCounters", none);
    return new Size(
        browser.evaluate("performance.memory.usedJSHeapSize").asLong(),
        counters.path("nodes").asLong(),
        counters.path("jsEventListeners").asLong());
  }
}
