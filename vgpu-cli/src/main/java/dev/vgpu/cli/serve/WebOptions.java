package dev.vgpu.cli.serve;

import static java.nio.charset.StandardCharsets.UTF_8;

import dev.vgpu.GpuPool;
import dev.vgpu.cli.command.CliContext;
import dev.vgpu.cli.console.UserException;
import dev.vgpu.cli.machine.RunDirectory;
import dev.vgpu.cli.mig.MigTree;
import dev.vgpu.dashboard.Dashboard;
import dev.vgpu.dashboard.DashboardOptions;
import dev.vgpu.dashboard.Token;
import dev.vgpu.dashboard.WebAddress;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.attribute.PosixFilePermission;
import java.util.Optional;
import java.util.Set;
import org.jspecify.annotations.Nullable;
import picocli.CommandLine.ITypeConverter;
import picocli.CommandLine.Option;
import picocli.CommandLine.TypeConversionException;

/** The options of the dashboard. Mutable; picocli sets it. */
final class WebOptions {
  private static final Set<PosixFilePermission> OF_OTHERS =
      Set.of(PosixFilePermission.GROUP_READ, PosixFilePermission.OTHERS_READ);

  @Option(
      names = "--web",
      paramLabel = "ADDRESS",
      arity = "0..1",
      fallbackValue = "",
      converter = AddressConverter.class,
      description = {
        "Serve the dashboard there: HOST:PORT, HOST or PORT. Default: 127.0.0.1:8470. Where others"
            + " reach it, they need a token, which is printed."
      })
  private @Nullable WebAddress address;

  @Option(
      names = "--web-token",
      paramLabel = "FILE",
      description = "What viewers of the dashboard have to give is in this file of yours alone.")
  private @Nullable Path tokenFile;

  /** Parses addresses. */
  static final class AddressConverter implements ITypeConverter<WebAddress> {
    @Override
    public WebAddress convert(String text) {
      try {
        return WebAddress.fromString(text);
      } catch (IllegalArgumentException e) {
        throw new TypeConversionException(e.getMessage());
      }
    }
  }

  /** A running dashboard, or none. */
  interface Serving extends AutoCloseable {
    /** {@return the dashboard's address in words for people; empty if there is no dashboard} */
    Optional<String> said();

    @Override
    void close();
  }

  /** Starts serving the dashboard if the option was given. */
  Serving open(CliContext context, GpuPool pool) throws UserException {
    if (address == null) {
      return serving(Optional.empty(), () -> {});
    }
    Optional<Token> token = token(address);
    MigTree mig = new MigTree(RunDirectory.of(context.environment()).path());
    DashboardOptions.Builder options =
        DashboardOptions.builder().address(address).mig(() -> mig.read().toString());
    token.ifPresent(options::token);
    try {
      Dashboard dashboard =
          Dashboard.open(pool, options.build(), context.clock()::nowNs, context.clock()::wallTime);
      return serving(
          Optional.of(said(dashboard.address(), token)),
          () -> {
            dashboard.close();
            mig.close();
          });
    } catch (IOException e) {
      mig.close();
      throw new UserException(
          "the dashboard cannot listen on "
              + address.inUrl()
              + ": "
              + e.getMessage()
              + "; name another address with --web HOST:PORT",
          e);
    }
  }

  private static Serving serving(Optional<String> said, Runnable close) {
    return new Serving() {
      @Override
      public Optional<String> said() {
        return said;
      }

      @Override
      public void close() {
        close.run();
      }
    };
  }

  private Optional<Token> token(WebAddress where) throws UserException {
    if (tokenFile == null) {
      return where.isLoopback() ? Optional.empty() : Optional.of(Token.random());
    }
    if (!Files.exists(tokenFile)) {
      throw new UserException("there is no file " + tokenFile + ": write the token into it");
    }
    if (Files.isDirectory(tokenFile)) {
      throw new UserException(tokenFile + " is a directory: name the file that has the token");
    }
    try {
      if (Files.getPosixFilePermissions(tokenFile).stream().anyMatch(OF_OTHERS::contains)) {
        throw new UserException(
            "others may read the token in " + tokenFile + "; chmod 0600 " + tokenFile);
      }
      return Optional.of(Token.of(Files.readString(tokenFile, UTF_8).strip()));
    } catch (IOException e) {
      throw new UserException("the token cannot be read: " + e, e);
    } catch (IllegalArgumentException e) {
      throw new UserException(tokenFile + ": " + e.getMessage(), e);
    }
  }

  private String said(WebAddress where, Optional<Token> token) {
    String shown = "vgpu: dashboard at http://" + where.inUrl() + "/";
    return tokenFile == null
        ? shown + token.map(secret -> "login#" + secret.text()).orElse("")
        : shown;
  }
}
