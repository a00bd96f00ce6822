package dev.vgpu.dashboard;

import static java.nio.charset.StandardCharsets.UTF_8;

import com.sun.net.httpserver.Headers;
import com.sun.net.httpserver.HttpExchange;
import com.sun.net.httpserver.HttpHandler;
import dev.vgpu.dashboard.PageFiles.PageFile;
import java.io.IOException;
import java.net.InetAddress;
import java.net.URLDecoder;
import java.net.UnknownHostException;
import java.util.Locale;
import java.util.Optional;
import java.util.Set;
import java.util.concurrent.ThreadFactory;

/** Answers the HTTP requests of the dashboard. Safe for use by several threads. */
final class Pages implements HttpHandler {
  private static final int OK = 200;
  private static final int SEE_OTHER = 303;
  private static final int BAD_REQUEST = 400;
  private static final int UNAUTHORIZED = 401;
  private static final int FORBIDDEN = 403;
  private static final int NOT_FOUND = 404;
  private static final int NOT_ALLOWED = 405;
  private static final int MISDIRECTED = 421;
  private static final int UNAVAILABLE = 503;

  private static final int LONGEST_LOGIN = 1_024;
  private static final int LONGEST_PATH = 200;
  private static final String TOKEN_FIELD = "token=";
  private static final String MESSAGE_PLACE = "<!--message-->";
  private static final Set<String> WITHOUT_TOKEN =
      Set.of("/login", "/login.js", "/style.css", "/icon.svg");
  private static final String POLICY =
      "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self';"
          + " form-action 'self'; base-uri 'none'; frame-ancestors 'none'";

  private final WebAddress address;
  private final Optional<Token> token;
  private final Board board;
  private final Viewers viewers;
  private final ThreadFactory threads;
  private final Set<String> ownNames;
  private final PageFiles files = new PageFiles();
  private final PageFile wrongLogin =
      files
          .at("/login")
          .orElseThrow()
          .with(MESSAGE_PLACE, "<p role=\"alert\">That is not the token.</p>");

  Pages(
      WebAddress address,
      Optional<Token> token,
      Board board,
      Viewers viewers,
      ThreadFactory threads) {
    this.address = address;
    this.ownNames = address.isLoopback() ? Set.of() : ownNames();
    this.token = token;
    this.board = board;
    this.viewers = viewers;
    this.threads = threads;
  }

  private static Set<String> ownNames() {
    try {
      return Set.of(InetAddress.getLocalHost().getHostName().toLowerCase(Locale.ROOT));
    } catch (UnknownHostException e) {
      return Set.of(); // The machine can then be reached by address only.
    }
  }

  @Override
  public void handle(HttpExchange exchange) throws IOException {
    boolean isWatched = false;
    try {
      isWatched = answer(exchange);
    } finally {
      if (!isWatched) {
        exchange.close();
      }
    }
  }

  /** Returns whether the exchange stays open. */
  private boolean answer(HttpExchange exchange) throws IOException {
    Headers headers = exchange.getResponseHeaders();
    headers.set("Content-Security-Policy", POLICY);
    headers.set("X-Content-Type-Options", "nosniff");
    headers.set("Referrer-Policy", "no-referrer");
    headers.set("Cross-Origin-Resource-Policy", "same-origin");
    headers.set("Cache-Control", "no-store");
    String path = exchange.getRequestURI().getRawPath();
    String method = exchange.getRequestMethod();
    if (!address.isServed(header(exchange, "Host"), ownNames)) {
      say(exchange, MISDIRECTED, "This dashboard is not served under that name: use its address.");
    } else if (path == null || path.length() > LONGEST_PATH) {
      say(exchange, BAD_REQUEST, "No such page.");
    } else if (method.equals("POST") && path.equals("/login")) {
      login(exchange);
    } else if (!method.equals("GET") && !method.equals("HEAD")) {
      headers.set("Allow", "GET, HEAD");
      say(exchange, NOT_ALLOWED, "Only GET and HEAD are answered: nothing can be changed here.");
    } else if (!WITHOUT_TOKEN.contains(path) && !isAllowed(exchange)) {
      askForToken(exchange, path);
    } else if (path.equals("/events")) {
      return watch(exchange);
    } else {
      Optional<PageFile> file = files.at(path);
      if (file.isPresent()) {
        send(exchange, OK, file.get());
      } else {
        say(exchange, NOT_FOUND, "There is no such page here.");
      }
    }
    return false;
  }

  private static Optional<String> header(HttpExchange exchange, String name) {
    return Optional.ofNullable(exchange.getRequestHeaders().getFirst(name));
  }

  // ---- the token

  private boolean isAllowed(HttpExchange exchange) {
    return token
        .map(
            secret ->
                header(exchange, "Authorization").filter(secret::isGivenBy).isPresent()
                    || header(exchange, "Cookie")
                        .filter(cookies -> secret.isKeptBy(cookies, cookieName()))
                        .isPresent())
        .orElse(true);
  }

  /** Includes the port, because browsers send a cookie to every port of a host. */
  private String cookieName() {
    return "vgpu-" + address.port();
  }

  private void askForToken(HttpExchange exchange, String path) throws IOException {
    if (path.equals("/")) {
      exchange.getResponseHeaders().set("Location", "/login");
      say(exchange, SEE_OTHER, "The token is asked for at /login.");
    } else {
      exchange.getResponseHeaders().set("WWW-Authenticate", "Bearer");
      say(exchange, UNAUTHORIZED, "The token is missing or wrong: log in at /login.");
    }
  }

  private void login(HttpExchange exchange) throws IOException {
    String body = new String(exchange.getRequestBody().readNBytes(LONGEST_LOGIN), UTF_8);
    Optional<Token> secret = token.filter(known -> known.is(tokenOf(body)));
    if (token.isPresent() && secret.isEmpty()) {
      send(exchange, UNAUTHORIZED, wrongLogin);
      return;
    }
    Headers headers = exchange.getResponseHeaders();
    secret.ifPresent(
        known ->
            headers.set(
                "Set-Cookie",
                cookieName() + "=" + known.cookieValue() + "; Path=/; HttpOnly; SameSite=Strict"));
    headers.set("Location", "/");
    say(exchange, SEE_OTHER, "The dashboard is at /.");
  }

  private static String tokenOf(String body) {
    if (!body.startsWith(TOKEN_FIELD)) {
      return "";
    }
    try {
      return URLDecoder.decode(body.substring(TOKEN_FIELD.length()), UTF_8).strip();
    } catch (IllegalArgumentException e) {
      return "";
    }
  }

  // ---- answers

  private boolean watch(HttpExchange exchange) throws IOException {
    if (header(exchange, "Sec-Fetch-Site").filter("cross-site"::equals).isPresent()) {
      say(exchange, FORBIDDEN, "Another site's page may not watch.");
      return false;
    }
    if (exchange.getRequestMethod().equals("HEAD")) {
      beginStream(exchange, -1);
      return false;
    }
    Viewer viewer = new Viewer(exchange.getResponseBody());
    if (!viewers.add(viewer)) {
      exchange.getResponseHeaders().set("Retry-After", "10");
      say(exchange, UNAVAILABLE, "As many watch as may: close another dashboard.");
      return false;
    }
    boolean isStarted = false;
    try {
      beginStream(exchange, 0);
      threads.newThread(() -> write(viewer, exchange)).start();
      isStarted = true;
    } finally {
      if (!isStarted) {
        viewers.remove(viewer);
      }
    }
    return true;
  }

  private static void beginStream(HttpExchange exchange, long length) throws IOException {
    exchange.getResponseHeaders().set("Content-Type", "text/event-stream; charset=utf-8");
    exchange.getResponseHeaders().set("X-Accel-Buffering", "no");
    exchange.sendResponseHeaders(OK, length);
  }

  private void write(Viewer viewer, HttpExchange exchange) {
    try {
      viewer.run(board.hello());
    } finally {
      viewers.remove(viewer);
      exchange.close();
    }
  }

  private static void send(HttpExchange exchange, int status, PageFile file) throws IOException {
    Headers headers = exchange.getResponseHeaders();
    headers.set("Content-Type", file.type());
    headers.set("Vary", "Accept-Encoding");
    boolean isGzipped =
        header(exchange, "Accept-Encoding").map(known -> known.contains("gzip")).orElse(false);
    if (isGzipped) {
      headers.set("Content-Encoding", "gzip");
    }
    write(exchange, status, isGzipped ? file.gzipped() : file.plain());
  }

  private static void say(HttpExchange exchange, int status, String text) throws IOException {
    exchange.getResponseHeaders().set("Content-Type", "text/plain; charset=utf-8");
    write(exchange, status, (text + "\n").getBytes(UTF_8));
  }

  private static void write(HttpExchange exchange, int status, byte[] bytes) throws IOException {
    if (exchange.getRequestMethod().equals("HEAD")) {
      exchange.sendResponseHeaders(status, -1);
      return;
    }
    exchange.sendResponseHeaders(status, bytes.length);
    exchange.getResponseBody().write(bytes);
  }
}
