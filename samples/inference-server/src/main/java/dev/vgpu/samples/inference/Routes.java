package dev.vgpu.samples.inference;

import dev.vgpu.GpuCapacityException;
import dev.vgpu.GpuTimeoutException;
import io.javalin.Javalin;
import io.javalin.http.Context;
import io.javalin.http.HttpResponseException;
import io.javalin.http.NotFoundResponse;
import io.javalin.http.ServiceUnavailableResponse;
import io.javalin.json.JavalinJackson;
import io.javalin.util.JavalinException;
import java.util.List;
import java.util.Map;
import java.util.function.Supplier;
import org.eclipse.jetty.server.AbstractConnector;
import org.eclipse.jetty.server.Connector;
import org.eclipse.jetty.server.Server;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/** The server's HTTP side. Every answer is JSON; a failure is {@code {"error": "..."}}. */
final class Routes {
  /** The largest number of texts in one request. */
  static final int MAX_TEXTS = 64;

  /** The longest text, in characters before tokenising. */
  static final int MAX_CHARACTERS = 10_000;

  private static final Logger LOG = LoggerFactory.getLogger(Routes.class);

  private final Supplier<@Nullable Serving> serving;

  /**
   * Makes the routes.
   *
   * @param serving supplies what is served now; null if nothing is
   */
  Routes(Supplier<@Nullable Serving> serving) {
    this.serving = serving;
  }

  /** The body of a request. */
  record EmbedRequest(List<String> texts) {
    void check() {
      if (texts.isEmpty() || texts.size() > MAX_TEXTS) {
        throw new BadInputException(
            "a request has 1 to " + MAX_TEXTS + " texts, not " + texts.size());
      }
      for (int i = 0; i < texts.size(); i++) {
        String text = texts.get(i);
        if (text == null || text.isBlank()) {
          throw new BadInputException("texts[" + i + "] is empty");
        }
        if (text.length() > MAX_CHARACTERS) {
          throw new BadInputException(
              "texts["
                  + i
                  + "] has "
                  + text.length()
                  + " characters, and at most "
                  + MAX_CHARACTERS
                  + " are read: split it");
        }
      }
    }
  }

  /** {@return a web server that so far only answers failures} */
  static Javalin newWebServer() {
    return Javalin.create(
            config -> {
              config.showJavalinBanner = false;
              config.startupWatcherEnabled = false;
              config.jsonMapper(new JavalinJackson(Json.MAPPER, false));
              config.http.prefer405over404 = true;
              config.http.disableCompression(); // numbers hardly compress, and it would take CPU
            })
        .exception(BadInputException.class, (e, ctx) -> fail(ctx, 400, e))
        .exception(HttpResponseException.class, (e, ctx) -> fail(ctx, e.getStatus(), e))
        .exception(ModelClosedException.class, (e, ctx) -> fail(ctx, 503, e))
        .exception(GpuTimeoutException.class, (e, ctx) -> fail(ctx, 503, e)) // overload
        .exception(GpuCapacityException.class, (e, ctx) -> fail(ctx, 413, e)) // above the quota
        .exception(
            Exception.class,
            (e, ctx) -> {
              LOG.error("a request failed: path={}", ctx.path(), e);
              fail(ctx, 500, new IllegalStateException("internal error; the log says more"));
            });
  }

  /** Stops the web server: answers in progress go out, for at most half a second. */
  static void stop(Javalin web) {
    Server jetty = web.jettyServer().server();
    jetty.setStopTimeout(500);
    for (Connector connector : jetty.getConnectors()) {
      // For open connections without a request. Otherwise the server waits a second for them too.
      ((AbstractConnector) connector).setShutdownIdleTimeout(50);
    }
    try {
      web.stop();
    } catch (JavalinException e) {
      LOG.warn("some clients did not take their answers in time: {}", e.getMessage());
    }
  }

  /** Adds this server's routes. */
  void addTo(Javalin web) {
    web.post("/embed", ctx -> embed(ctx, "online"));
    web.post("/models/{name}/embed", ctx -> embed(ctx, ctx.pathParam("name")));
    web.get("/models", ctx -> ctx.json(current().all().stream().map(ModelStatus::of).toList()));
    web.get("/healthz", ctx -> ctx.json(Map.of("models", current().models().keySet())));
  }

  private void embed(Context ctx, String name) throws Exception {
    ServedModel model = current().models().get(name);
    if (model == null) {
      throw new NotFoundResponse("no such model: '" + name + "'");
    }
    EmbedRequest request = Json.read(ctx, EmbedRequest.class);
    request.check();
    ctx.json(Map.of("vectors", model.embed(request.texts())));
  }

  private Serving current() {
    Serving now = serving.get();
    if (now == null) {
      throw new ServiceUnavailableResponse("nothing is served now");
    }
    return now;
  }

  private static void fail(Context ctx, int status, Exception e) {
    ctx.status(status).json(Map.of("error", String.valueOf(e.getMessage())));
  }
}
