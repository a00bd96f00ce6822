package dev.vgpu.cli.serve;

import com.sun.management.UnixOperatingSystemMXBean;
import dev.vgpu.GpuPool;
import dev.vgpu.GpuPoolOptions;
import dev.vgpu.cli.command.CliContext;
import dev.vgpu.cli.console.UserException;
import dev.vgpu.cli.machine.RunDirectory;
import dev.vgpu.cli.metrics.MetricsServer;
import dev.vgpu.cli.process.EndSignal;
import java.lang.management.ManagementFactory;
import java.net.InetSocketAddress;
import java.util.OptionalLong;
import java.util.concurrent.Callable;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import picocli.CommandLine.Command;
import picocli.CommandLine.Mixin;

/** Holds the seat until it is terminated. */
@Command(
    name = "serve",
    description = {
      "Hold the seat of this node: run the scheduler for all processes that share its GPUs.",
      "",
      "Optional: without it, the first process that opens the GPUs holds the seat, and another"
          + " takes over when it ends. With it, no program has to do this beside its own work."
    },
    footer = {
      "",
      "Prints a line on standard output once it is ready, and another if it takes the seat over"
          + " later. Ends on SIGTERM, SIGINT or SIGHUP.",
      "",
      "Exit codes: 0 ended by a signal, 1 the seat cannot be held here, 2 wrong usage."
    })
public final class ServeCommand implements Callable<Integer> {
  private static final long LOOK_AGAIN_MS = 500;
  private static final String MOST_CONNECTIONS = "jdk.httpserver.maxConnections";

  private final CliContext context;
  @Mixin private final GpuSettingsOptions settings = new GpuSettingsOptions();
  @Mixin private final MetricsOptions metrics = new MetricsOptions();
  @Mixin private final WebOptions web = new WebOptions();
  private final CountDownLatch end = new CountDownLatch(1);

  /** Creates the command. */
  public ServeCommand(CliContext context) {
    this.context = context;
  }

  @Override
  public Integer call() throws InterruptedException, UserException {
    for (EndSignal signal : EndSignal.values()) {
      signal.handle(end::countDown);
    }
    limitConnections();
    RunDirectory directory = RunDirectory.of(context.environment());
    if (directory.isOfRoot()) {
      throw new UserException(
          "only root can hold the seat of " + directory.path() + ": systemctl start vgpu, as root");
    }
    try (GpuPool pool = open();
        MetricsServer scraped = metrics.open(pool);
        WebOptions.Serving dashboard = web.open(context, pool)) {
      String what = directory.path() + ", " + count(pool.gpus().size());
      OptionalLong told = directory.seatHolder();
      say(told, what);
      if (scraped != null) {
        sayMetrics(scraped.address());
      }
      dashboard.said().ifPresent(this::say);
      while (!end.await(LOOK_AGAIN_MS, TimeUnit.MILLISECONDS)) {
        OptionalLong holder = directory.seatHolder();
        if (holder.isPresent() && !holder.equals(told)) {
          say(holder, what);
          told = holder;
        }
      }
    }
    return 0;
  }

  /** Each listener gets a quarter of the file descriptors, so that half is left for the seat. */
  private static void limitConnections() {
    if (System.getProperty(MOST_CONNECTIONS) == null
        && ManagementFactory.getOperatingSystemMXBean()
            instanceof UnixOperatingSystemMXBean system) {
      long most = Math.min(system.getMaxFileDescriptorCount() / 4, Integer.MAX_VALUE);
      System.setProperty(MOST_CONNECTIONS, Long.toString(most));
    }
  }

  private GpuPool open() {
    return context.pools().open(GpuPoolOptions.builder().gpuSettings(settings.settings()).build());
  }

  private void say(OptionalLong holder, String what) {
    long self = ProcessHandle.current().pid();
    if (holder.isEmpty() || holder.getAsLong() == self) {
      say("vgpu: holding the seat of " + what + ", pid " + self);
    } else {
      say("vgpu: standing by for the seat of " + what + "; held by pid " + holder.getAsLong());
    }
  }

  private void say(String line) {
    context.console().out().println(line);
    context.console().out().flush();
  }

  private void sayMetrics(InetSocketAddress address) {
    String host = address.getAddress().getHostAddress();
    context
        .console()
        .out()
        .println(
            "vgpu: metrics at http://"
                + (host.contains(":") ? "[" + host + "]" : host)
                + ":"
                + address.getPort()
                + "/metrics");
    context.console().out().flush();
  }

  private static String count(int gpus) {
    return gpus + (gpus == 1 ? " GPU" : " GPUs");
  }
}
