package dev.vgpu.bench.chaos.soak;

import dev.vgpu.bench.chaos.ChaosOptions;
import dev.vgpu.cli.command.JsonOption;
import java.nio.file.Path;
import java.util.Random;
import picocli.CommandLine.Mixin;
import picocli.CommandLine.Model.CommandSpec;
import picocli.CommandLine.Option;
import picocli.CommandLine.ParameterException;
import picocli.CommandLine.Spec;

/** The options of {@code vgpu soak}, and of the process that it starts. Picocli sets them. */
public final class SoakOptions {
  private static final int MOST_TENANTS = 512;

  @SuppressWarnings("NullAway.Init") // picocli sets it before the options.
  @Spec(Spec.Target.MIXEE)
  private CommandSpec spec;

  private double hours = 8;
  int tenants = 64;

  @Option(
      names = "--seed",
      paramLabel = "S",
      description = "What befalls the tenants is drawn from it. Default: a new one each time.")
  long seed = ChaosOptions.randomSeed(new Random());

  @Option(names = "--out", paramLabel = "DIR", description = "For the results. Default: vgpu-soak.")
  Path out = Path.of("vgpu-soak");

  @Option(names = "--append", description = "Go on where the results in DIR end.")
  boolean append;

  @Mixin final JsonOption json = new JsonOption();

  @Option(names = "--hours", paramLabel = "N", description = "How long. Default: 8.")
  void setHours(double hours) {
    check(hours > 0);
    this.hours = hours;
  }

  @Option(names = "--tenants", paramLabel = "N", description = "How many at once. Default: 64.")
  void setTenants(int tenants) {
    check(tenants >= 1 && tenants <= MOST_TENANTS);
    this.tenants = tenants;
  }

  private void check(boolean valid) {
    if (!valid) {
      throw new ParameterException(
          spec.commandLine(), "--hours must be more than 0, --tenants from 1 to " + MOST_TENANTS);
    }
  }

  double seconds() {
    return hours * 3_600;
  }

  /** The interval of the samples: long enough that measuring does not distort the figures. */
  double sampleSeconds() {
    return Math.max(2, Math.min(30, seconds() / 120));
  }

  /**
   * How often the seat's holder is killed in the first half. In the second half, one holder is
   * observed for long.
   */
  double seatSeconds() {
    return Math.max(5, Math.min(1_800, seconds() / 8));
  }
}
