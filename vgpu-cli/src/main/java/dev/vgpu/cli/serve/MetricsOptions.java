package dev.vgpu.cli.serve;

import dev.vgpu.GpuPool;
import dev.vgpu.cli.console.UserException;
import dev.vgpu.cli.metrics.MetricsAddress;
import dev.vgpu.cli.metrics.MetricsServer;
import java.io.IOException;
import java.net.InetSocketAddress;
import org.jspecify.annotations.Nullable;
import picocli.CommandLine.ITypeConverter;
import picocli.CommandLine.Option;
import picocli.CommandLine.TypeConversionException;

/** The options that say whether and where metrics are served. Mutable; picocli sets it. */
final class MetricsOptions {
  @Option(
      names = "--metrics",
      paramLabel = "ADDRESS",
      converter = AddressConverter.class,
      description = {
        "Serve metrics for Prometheus there, at /metrics: PORT on this machine alone, or HOST:PORT."
            + " Whoever reaches it can read the names of tenants."
      })
  private @Nullable InetSocketAddress address;

  /** Parses addresses. */
  static final class AddressConverter implements ITypeConverter<InetSocketAddress> {
    @Override
    public InetSocketAddress convert(String text) {
      try {
        return MetricsAddress.fromString(text);
      } catch (IllegalArgumentException e) {
        throw new TypeConversionException(String.valueOf(e.getMessage()));
      }
    }
  }

  /** Starts serving if the option was given; otherwise returns null. */
  @Nullable MetricsServer open(GpuPool pool) throws UserException {
    if (address == null) {
      return null;
    }
    try {
      return MetricsServer.open(pool, address);
    } catch (IOException e) {
      throw new UserException(
          "metrics cannot be served at " + address + ": " + e.getMessage() + "; take another port",
          e);
    }
  }
}
