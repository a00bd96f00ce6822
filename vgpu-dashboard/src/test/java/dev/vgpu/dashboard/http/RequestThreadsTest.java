package dev.vgpu.dashboard.http;

import static java.nio.charset.StandardCharsets.US_ASCII;
import static org.assertj.core.api.Assertions.assertThat;

import com.sun.net.httpserver.HttpExchange;
import com.sun.net.httpserver.HttpServer;
import dev.vgpu.dashboard.Await;
import java.io.IOException;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.Socket;
import java.net.SocketException;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CountDownLatch;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** Clients that are slow, vanish or never end their request, at a server with four threads. */
class RequestThreadsTest {
  private static final int MOST = 4;
  private static final int LARGE = 64 << 20;

  private final RequestThreads threads = new RequestThreads("test", MOST, Duration.ofMillis(25));
  private final List<Socket> sockets = new ArrayList<>();
  private final CountDownLatch end = new CountDownLatch(1);
  private HttpServer server;

  @BeforeEach
  void open() throws IOException {
    server = HttpServer.create(new InetSocketAddress(InetAddress.getLoopbackAddress(), 0), 1_024);
    server.setExecutor(threads);
    server.createContext("/", RequestThreadsTest::answer);
    server.createContext("/large", RequestThreadsTest::answerLarge);
    server.createContext("/watched", this::watched);
    server.start();
  }

  @AfterEach
  void close() throws IOException {
    end.countDown();
    for (Socket socket : sockets) {
      socket.close();
    }
    server.stop(0);
    threads.close();
  }

  private static void answer(HttpExchange exchange) throws IOException {
    try (exchange) {
      exchange.sendResponseHeaders(200, -1);
    }
  }

  private static void answerLarge(HttpExchange exchange) throws IOException {
    try (exchange) {
      exchange.sendResponseHeaders(200, LARGE);
      exchange.getResponseBody().write(new byte[LARGE]);
    }
  }

  /** Leaves the answer to a thread of its own, as the dashboard does. */
  private void watched(HttpExchange exchange) throws IOException {
    exchange.sendResponseHeaders(200, 0);
    Thread writer =
        new Thread(
            () -> {
              try (exchange) {
                end.await();
                exchange.getResponseBody().write('x');
              } catch (IOException | InterruptedException e) {
                throw new IllegalStateException(e);
              }
            });
    writer.start();
  }

  private Socket send(String text) throws IOException {
    Socket socket = new Socket(InetAddress.getLoopbackAddress(), server.getAddress().getPort());
    sockets.add(socket);
    socket.setSoTimeout(60_000);
    socket.getOutputStream().write(text.getBytes(US_ASCII));
    return socket;
  }

  private static String get(String path) {
    return "GET " + path + " HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n";
  }

  private static String answerOf(Socket socket) throws IOException {
    return new String(socket.getInputStream().readAllBytes(), US_ASCII);
  }

  private static void assertClosed(Socket socket) throws IOException {
    try {
      assertThat(socket.getInputStream().read()).isEqualTo(-1);
    } catch (SocketException e) {
      assertThat(e).hasMessageContaining("reset");
    }
  }

  @ParameterizedTest
  @ValueSource(
      strings = {
        "G",
        "GET / HTTP/1.1\r\nHost: loc",
        "GET / HTTP/1.1\r\nHost: localhost\r\nX: y\r\n",
      })
  void requestThatNeverEndsIsClosed(String half) throws Exception {
    assertClosed(send(half));
    Await.until(() -> threads.running() == 0);
  }

  @Test
  void manyThatNeverEndHoldUpNobody() throws Exception {
    for (int i = 0; i < 20 * MOST; i++) {
      send("GET / HTTP/1.1\r\nHost: loc");
    }
    assertThat(answerOf(send(get("/")))).startsWith("HTTP/1.1 200");
  }

  @Test
  void clientThatReadsNothingLosesItsThread() throws Exception {
    for (int i = 0; i < 2 * MOST; i++) {
      send(get("/large"));
    }
    assertThat(answerOf(send(get("/")))).startsWith("HTTP/1.1 200");
    Await.until(() -> threads.running() == 0);
  }

  @Test
  void thoseWhoVanishLeaveNothing() throws Exception {
    for (int i = 0; i < 500; i++) {
      Socket socket = send(i % 2 == 0 ? get("/large") : "GET / HTT");
      socket.setSoLinger(true, 0);
      socket.close();
    }
    assertThat(answerOf(send(get("/")))).startsWith("HTTP/1.1 200");
    Await.until(() -> threads.running() == 0);
  }

  /** The others' threads are ended early meanwhile; it holds none. */
  @Test
  void answerOfAnotherThreadIsNotEnded() throws Exception {
    Socket watcher = send(get("/watched"));
    List<Socket> half = new ArrayList<>();
    for (int i = 0; i < 2 * MOST; i++) {
      half.add(send("GET / HTTP/1.1\r\nHost: loc"));
    }
    for (Socket socket : half) {
      assertClosed(socket);
    }
    end.countDown();
    assertThat(answerOf(watcher)).startsWith("HTTP/1.1 200").contains("x");
  }
}
