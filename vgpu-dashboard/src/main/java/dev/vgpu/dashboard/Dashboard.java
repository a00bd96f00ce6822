package dev.vgpu.dashboard;

import com.sun.net.httpserver.HttpServer;
import dev.vgpu.GpuPool;
import dev.vgpu.dashboard.http.RequestThreads;
import java.io.IOException;
import java.net.InetSocketAddress;
import java.net.UnknownHostException;
import java.time.InstantSource;
import java.util.concurrent.Executors;
import java.util.concurrent.ScheduledExecutorService;
import java.util.concurrent.TimeUnit;
import java.util.function.LongSupplier;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Serves the dashboard of a pool until it is closed. It looks at the pool again and again, even
 * without viewers, so that the page can show the past. Safe for use by several threads.
 */
public final class Dashboard implements AutoCloseable {
  private static final Logger LOG = LoggerFactory.getLogger(Dashboard.class);
  private static final int LOOKS_BETWEEN_READINGS = 5;

  private final WebAddress address;
  private final Board board;
  private final Viewers viewers;
  private final HttpServer server;
  private final RequestThreads workers;
  private final ScheduledExecutorService looks;
  private int looksUntilReading;
  private boolean isBlind;

  private Dashboard(GpuPool pool, DashboardOptions options, LongSupplier nowNs, InstantSource wall)
      throws IOException {
    WebAddress wanted = options.address();
    InetSocketAddress where = new InetSocketAddress(wanted.host(), wanted.port());
    if (where.isUnresolved()) {
      throw new UnknownHostException("no address is known for " + wanted.host());
    }
    if (options.token().isEmpty() && !where.getAddress().isLoopbackAddress()) {
      throw new UnknownHostException(wanted.host() + " is " + where.getAddress() + ", not local");
    }
    server = HttpServer.create(where, RequestThreads.BACKLOG);
    address = new WebAddress(wanted.host(), server.getAddress().getPort());
    board = new Board(pool, nowNs, wall, options.mig());
    viewers = new Viewers(options.mostViewers());
    workers = new RequestThreads("vgpu-web");
    looks = Executors.newSingleThreadScheduledExecutor(RequestThreads.daemons("vgpu-web-look"));
    server.setExecutor(workers);
    server.createContext(
        "/",
        new Pages(
            address, options.token(), board, viewers, RequestThreads.daemons("vgpu-web-viewer")));
  }

  /**
   * Starts serving.
   *
   * @param pool the pool that is shown; must stay open until the dashboard is closed
   * @param options the options
   * @return the dashboard
   * @throws IOException if the address cannot be listened on
   */
  public static Dashboard open(GpuPool pool, DashboardOptions options) throws IOException {
    return open(pool, options, NanoClock::nowNs, NanoClock::now);
  }

  /**
   * Starts serving with another clock.
   *
   * @param pool the pool that is shown; must stay open until the dashboard is closed
   * @param options the options
   * @param nowNs nanoseconds of a monotonic clock
   * @param wall date and time
   * @return the dashboard
   * @throws IOException if the address cannot be listened on
   */
  public static Dashboard open(
      GpuPool pool, DashboardOptions options, LongSupplier nowNs, InstantSource wall)
      throws IOException {
    Dashboard dashboard = new Dashboard(pool, options, nowNs, wall);
    dashboard.look();
    dashboard.begin(options.interval().toNanos());
    dashboard.server.start();
    return dashboard;
  }

  @SuppressWarnings("FutureReturnValueIgnored") // look() throws nothing
  private void begin(long intervalNs) {
    // Not at a fixed rate: after a pause of the process, all missed looks would come at once.
    looks.scheduleWithFixedDelay(this::look, intervalNs, intervalNs, TimeUnit.NANOSECONDS);
  }

  /** Tells the viewers of a look that fails; the next one happens all the same. */
  private void look() {
    try {
      if (looksUntilReading <= 0) {
        board.readDevices();
        looksUntilReading = LOOKS_BETWEEN_READINGS;
      }
      looksUntilReading--;
      viewers.tell(board.look());
      isBlind = false;
    } catch (RuntimeException | Error e) {
      if (!isBlind) {
        LOG.warn("the dashboard cannot look at the pool; it tries again and again", e);
      }
      isBlind = true;
      viewers.tell(board.unknown(e));
    }
  }

  /** {@return the address on which it listens, with the actual port} */
  public WebAddress address() {
    return address;
  }

  /** {@return the current number of viewers} */
  int viewers() {
    return viewers.count();
  }

  /** Closes all connections. A second call does nothing. */
  @Override
  public void close() {
    looks.shutdownNow();
    viewers.close();
    server.stop(0);
    workers.close();
    board.close();
  }
}
