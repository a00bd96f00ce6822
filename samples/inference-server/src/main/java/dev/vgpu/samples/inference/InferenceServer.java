package dev.vgpu.samples.inference;

import dev.vgpu.GpuPool;
import dev.vgpu.request.MemorySize;
import dev.vgpu.request.PreemptionClass;
import dev.vgpu.request.VirtualGpuRequest;
import io.javalin.Javalin;
import io.javalin.util.JavalinException;
import java.io.IOException;
import java.util.List;
import java.util.Map;
import java.util.concurrent.Callable;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * An embedding server that shares its GPU: {@code POST /embed} on an online virtual GPU, and a
 * batch job on an offline one. Safe for use by several threads.
 */
public final class InferenceServer implements AutoCloseable {
  private static final Logger LOG = LoggerFactory.getLogger(InferenceServer.class);

  private final Object changing = new Object();
  private final Javalin web = Routes.newWebServer();
  private volatile @Nullable Serving serving;
  private volatile boolean closing;
  private @Nullable GpuPool pool; // this field and the next are guarded by changing
  private @Nullable ModelStore store;

  /** Creates a server that is not started. */
  InferenceServer() {}

  /**
   * Runs the server until the process is asked to end.
   *
   * @param arguments see {@code --help}
   */
  public static void main(String[] arguments) {
    ServerArguments parsed;
    try {
      parsed = ServerArguments.parse(arguments);
    } catch (IllegalArgumentException e) {
      System.err.println("inference-server: " + e.getMessage() + " (--help shows the usage)");
      System.exit(2);
      return;
    }
    if (parsed.help()) {
      System.out.println(ServerArguments.HELP);
      return;
    }
    InferenceServer server = new InferenceServer();
    TerminationSignal.handle(
        signal -> {
          try {
            server.close();
          } catch (RuntimeException | Error e) {
            LOG.error("not everything was closed", e);
          } finally {
            System.exit(128 + signal);
          }
        });
    try {
      int port = server.start(parsed);
      System.out.println("listening on http://127.0.0.1:" + port);
    } catch (Exception | LinkageError e) {
      if (!server.closing) { // otherwise the signal's thread ends the process
        System.err.println("inference-server: " + rootCause(e));
        LOG.debug("the server did not start", e);
        server.close();
        System.exit(1);
      }
    }
  }

  private static String rootCause(Throwable e) {
    Throwable cause = e;
    while (cause.getCause() != null) {
      cause = cause.getCause();
    }
    String message = cause.getMessage();
    return message == null || !message.contains(" ") ? cause.toString() : message;
  }

  /**
   * Starts everything: first the port, which fails most often, then the slow parts.
   *
   * @param arguments where to listen and what to run
   * @return the port that it listens on
   * @throws ModelClosedException if {@link #close} was called meanwhile
   */
  int start(ServerArguments arguments) throws Exception {
    synchronized (changing) {
      checkNotClosing();
      new Routes(() -> serving).addTo(web);
      listen(arguments.port());
      GpuPool openedPool = GpuPool.open();
      pool = openedPool;
      ModelStore openedStore = ModelStore.open();
      store = openedStore;
      List<String> corpus = Resources.lines("corpus.txt");
      new DemoRoutes(new DemoPhases(this, openedPool, openedStore, corpus)).addTo(web);
      serve(() -> defaults(openedPool, openedStore, arguments.offline() ? corpus : List.of()));
    }
    return web.port();
  }

  private void listen(int port) throws IOException {
    try {
      web.start("127.0.0.1", port);
    } catch (JavalinException e) {
      throw new IOException("cannot listen on 127.0.0.1:" + port + ": " + rootCause(e));
    }
  }

  private static Serving defaults(GpuPool pool, ModelStore store, List<String> corpus)
      throws Exception {
    // #region requests
    VirtualGpuRequest online =
        VirtualGpuRequest.builder()
            .name("online")
            .preemptionClass(PreemptionClass.ONLINE)
            .memory(MemorySize.ofMebibytes(512))
            .maxConcurrentCalls(1) // one call fills the device: two would only slow each other down
            .build();
    // #endregion requests
    ServedModel model = ServedModel.open(pool, online, store);
    if (corpus.isEmpty()) {
      return new Serving(Map.of("online", model), List.of());
    }
    // #region offline
    VirtualGpuRequest offline =
        online.toBuilder().name("corpus").preemptionClass(PreemptionClass.OFFLINE).build();
    ServedModel batches = ServedModel.open(pool, offline, store);
    // Your own job would write the vectors to a search index.
    OfflineCorpus job = new OfflineCorpus(batches, corpus, 2, vectors -> {});
    // #endregion offline
    return new Serving(Map.of("online", model), List.of(job));
  }

  /**
   * Ends what is served and serves something else. Requests that arrive meanwhile are answered with
   * 503.
   *
   * @param next opens what is to be served; called when everything else has ended
   * @throws ModelClosedException if the server is closed
   */
  void serve(Callable<Serving> next) throws Exception {
    synchronized (changing) {
      checkNotClosing();
      endServing();
      serving = next.call();
    }
  }

  private void checkNotClosing() {
    if (closing) {
      throw new ModelClosedException("the server", null);
    }
  }

  private void endServing() {
    Serving ended = serving;
    serving = null;
    if (ended != null) {
      ended.close();
    }
  }

  /**
   * Ends everything within about a second, in the only order that works. First no request is
   * admitted. Then the virtual GPUs are closed: their waiting calls fail, their running calls are
   * cancelled. Then the answers go out. Only when no call is inside any more, the sessions are
   * freed.
   */
  @Override
  public void close() {
    closing = true;
    synchronized (changing) { // waits for a start or a change in progress
      endServing();
    }
    Routes.stop(web); // not under the lock: a request to change waits for it, and is answered
    synchronized (changing) {
      if (store != null) {
        store.close();
      }
      if (pool != null) {
        pool.close();
      }
    }
  }
}
