package dev.vgpu.k8s;

import dev.vgpu.k8s.node.NodeRole;
import dev.vgpu.k8s.scheduler.SchedulerRole;
import dev.vgpu.k8s.scheduler.ShowCommand;
import io.fabric8.kubernetes.client.KubernetesClientException;
import java.io.IOException;
import picocli.CommandLine;
import picocli.CommandLine.Command;
import picocli.CommandLine.Model.CommandSpec;
import picocli.CommandLine.Option;
import picocli.CommandLine.ParameterException;
import picocli.CommandLine.ParseResult;
import picocli.CommandLine.ScopeType;
import picocli.CommandLine.Spec;

/** The program {@code vgpu-k8s}. Exit codes: 0 terminated by a signal, 1 failed, 2 wrong usage. */
@Command(
    name = "vgpu-k8s",
    description = "Gives the pods of a Kubernetes cluster virtual GPUs.",
    synopsisSubcommandLabel = "ROLE",
    footer = {"", "Exit codes: 0 ended by a signal, 1 failed, 2 wrong usage."})
public final class VgpuK8sCommand implements Runnable {
  @SuppressWarnings("NullAway.Init") // picocli sets it before the call.
  @Spec
  private CommandSpec spec;

  @SuppressWarnings("UnusedVariable") // picocli shows the help.
  @Option(
      names = {"-h", "--help"},
      usageHelp = true,
      scope = ScopeType.INHERIT,
      description = "Show this help.")
  private boolean help;

  private VgpuK8sCommand() {}

  /**
   * Runs a role and ends this process.
   *
   * @param args the command line
   */
  public static void main(String[] args) {
    System.exit(commandLine().execute(args));
  }

  /** {@return the command; run it with {@link CommandLine#execute}} */
  static CommandLine commandLine() {
    return new CommandLine(new VgpuK8sCommand())
        .addSubcommand(new NodeRole())
        .addSubcommand(new SchedulerRole())
        .addSubcommand(new ShowCommand())
        .setCaseInsensitiveEnumValuesAllowed(true)
        .setExecutionExceptionHandler(VgpuK8sCommand::explain)
        .setUsageHelpAutoWidth(true);
  }

  /** One line says what the cluster or a setting refuses; anything else needs the stack. */
  private static int explain(Exception e, CommandLine command, ParseResult parsed)
      throws Exception {
    if (e instanceof KubernetesClientException
        || e instanceof IOException
        || e instanceof IllegalArgumentException) {
      command.getErr().println("vgpu-k8s: " + reason(e));
      return command.getCommandSpec().exitCodeOnExecutionException();
    }
    throw e;
  }

  /** {@return the message, and that of the cause if it says more} */
  private static String reason(Throwable e) {
    String text = String.valueOf(e.getMessage());
    Throwable cause = e.getCause();
    return cause == null || cause.getMessage() == null || text.contains(cause.getMessage())
        ? text
        : text + ": " + reason(cause);
  }

  /** Fails: a role is required. */
  @Override
  public void run() {
    throw new ParameterException(spec.commandLine(), "no role is given");
  }
}
