package dev.vgpu.cli;

import static java.nio.charset.StandardCharsets.UTF_8;

import dev.vgpu.cli.command.CheckoutCommands;
import dev.vgpu.cli.command.CliContext;
import dev.vgpu.cli.console.Console;
import dev.vgpu.cli.console.UserException;
import dev.vgpu.cli.container.CdiCommand;
import dev.vgpu.cli.doctor.DoctorCommand;
import dev.vgpu.cli.fleet.FleetCommand;
import dev.vgpu.cli.help.CompletionCommand;
import dev.vgpu.cli.help.ManCommand;
import dev.vgpu.cli.machine.SourceCheckout;
import dev.vgpu.cli.machine.VersionText;
import dev.vgpu.cli.mig.MigCommand;
import dev.vgpu.cli.run.RunCommand;
import dev.vgpu.cli.run.SuspendCommand;
import dev.vgpu.cli.serve.ServeCommand;
import dev.vgpu.cli.simulation.SimulateCommand;
import dev.vgpu.cli.text.Words;
import dev.vgpu.cli.watch.DevicesCommand;
import dev.vgpu.cli.watch.LsCommand;
import dev.vgpu.cli.watch.TopCommand;
import dev.vgpu.cli.watch.UsageCommand;
import dev.vgpu.request.FailureMode;
import dev.vgpu.request.MemorySize;
import dev.vgpu.request.PreemptionClass;
import dev.vgpu.request.SharePolicy;
import java.io.OutputStreamWriter;
import java.io.PrintStream;
import java.io.PrintWriter;
import java.io.StringWriter;
import java.time.Duration;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.concurrent.Callable;
import org.jspecify.annotations.Nullable;
import picocli.CommandLine;
import picocli.CommandLine.Command;
import picocli.CommandLine.Help;
import picocli.CommandLine.Model.CommandSpec;
import picocli.CommandLine.Option;
import picocli.CommandLine.ParameterException;
import picocli.CommandLine.ScopeType;
import picocli.CommandLine.Spec;
import picocli.CommandLine.UnmatchedArgumentException;

/**
 * The {@code vgpu} command. Exit codes: 0 done, 1 failed, 2 wrong usage, 130 terminated by Ctrl-C,
 * 143 by SIGTERM.
 */
@Command(
    name = "vgpu",
    description = "Cuts a GPU into virtual GPUs and keeps each to its share.",
    synopsisSubcommandLabel = "COMMAND",
    footer = {"", "Exit codes: 0 done, 1 failed, 2 wrong usage, 130 ended by Ctrl-C."})
public final class VgpuCommand implements Runnable {
  private static final String VERBOSE = "--verbose";
  private static final String VERSION = "--version";
  private static final String DEBUG = "VGPU_DEBUG";

  private static final String COMPLETION = "completion";
  private static final String MAN = "man";

  /** The subcommands, in the order in which the help lists them. */
  private static final List<String> NAMES =
      List.of(
          "run",
          "cdi",
          "ls",
          "top",
          "usage",
          "suspend",
          "resume",
          "serve",
          "devices",
          "mig",
          "doctor",
          "demo",
          "simulate",
          "fleet",
          "bench",
          "chaos",
          "soak",
          "gpu-check",
          COMPLETION,
          MAN);

  private final CliContext context;

  @SuppressWarnings("NullAway.Init") // picocli sets it before the call.
  @Spec
  private CommandSpec spec;

  @Option(
      names = VERBOSE,
      scope = ScopeType.INHERIT,
      description = "Log more, and show what is behind an error. So does VGPU_DEBUG=1.")
  private boolean verbose;

  @SuppressWarnings("UnusedVariable") // picocli shows the help.
  @Option(
      names = {"-h", "--help"},
      usageHelp = true,
      scope = ScopeType.INHERIT,
      description = "Show this help.")
  private boolean help;

  @SuppressWarnings("UnusedVariable") // picocli shows the version.
  @Option(names = VERSION, versionHelp = true, description = "Show the version and the commit.")
  private boolean version;

  private VgpuCommand(CliContext context) {
    this.context = context;
  }

  /**
   * Runs the command and ends this process.
   *
   * @param args the command line
   */
  public static void main(String[] args) {
    Map<String, String> environment = System.getenv();
    if (isVerbose(args) || isSet(environment)) {
      // The bundled logger reads this property when it is first used.
      System.setProperty("org.slf4j.simpleLogger.defaultLogLevel", "debug");
    }
    if (args.length == 1 && args[0].equals(VERSION)) {
      System.out.println(VersionText.line(environment)); // needs none of the setup below
      if (!System.out.checkError()) { // otherwise the usual way says why
        System.exit(CommandLine.ExitCode.OK);
      }
    }
    CliContext context = CliContext.ofProcess();
    System.setErr(context.console().err()); // the logger's too: its text may be anyone's
    try {
      System.exit(run(context, args));
    } catch (OutOfMemoryError e) {
      // No thread can be created either, so an orderly exit, which needs some, would fail.
      context.console().err().println("vgpu: " + e.getMessage());
      Runtime.getRuntime().halt(CommandLine.ExitCode.SOFTWARE);
    }
  }

  /**
   * {@return the exit code of a command line, once it has run; a command whose output is lost has
   * failed}
   *
   * @param context the streams, environment, GPUs and clock of the command
   * @param args the command line
   */
  public static int run(CliContext context, String... args) {
    int exitCode = execute(context, args);
    Optional<String> lost = context.console().lostOutput();
    if (lost.isEmpty()) {
      return exitCode;
    }
    context.console().err().println("vgpu: cannot write the output: " + lost.get());
    return exitCode == CommandLine.ExitCode.OK ? CommandLine.ExitCode.SOFTWARE : exitCode;
  }

  /** Runs it without a parser where it needs none: the parser takes a while. */
  private static int execute(CliContext context, String... args) {
    Callable<Integer> complete = args.length == 1 ? complete(args[0], context) : null;
    if (complete == null) {
      return commandLine(context, args).execute(args);
    }
    try {
      return complete.call();
    } catch (Exception e) {
      return new VgpuCommand(context).failed(e);
    }
  }

  /** {@return a short command that may be given without arguments, or null} */
  private static @Nullable Callable<Integer> complete(String name, CliContext context) {
    return switch (name) {
      case "ls" -> new LsCommand(context);
      case "devices" -> new DevicesCommand(context);
      default -> null;
    };
  }

  /** Arguments after "--" belong to another program. */
  private static boolean isVerbose(String[] args) {
    return Arrays.stream(args).takeWhile(arg -> !arg.equals("--")).anyMatch(VERBOSE::equals);
  }

  /**
   * {@return the command; run it with {@link CommandLine#execute}}
   *
   * @param context the streams, environment, GPUs and clock of the command
   * @param args the arguments that the command will be given; if the first one names a subcommand,
   *     only that one is loaded, because loading all of them takes longer than most of them run
   */
  static CommandLine commandLine(CliContext context, String... args) {
    VgpuCommand command = new VgpuCommand(context);
    Console console = context.console();
    CommandLine line = new CommandLine(command);
    line.getCommandSpec()
        .versionProvider(() -> new String[] {VersionText.line(context.environment())});
    for (String name : namesFor(context, args)) {
      line.addSubcommand(name, subcommand(name, context));
    }
    return line.registerConverter(MemorySize.class, Words::memorySize)
        .registerConverter(Duration.class, Words::duration)
        .registerConverter(SharePolicy.class, Words::policy)
        .registerConverter(PreemptionClass.class, Words::preemptionClass)
        .registerConverter(FailureMode.class, Words::failureMode)
        .setOut(writer(console.outDrawn()))
        .setErr(writer(console.errDrawn()))
        .setColorScheme(Help.defaultColorScheme(console.outAnsi()))
        .setUsageHelpAutoWidth(true)
        .setCaseInsensitiveEnumValuesAllowed(true)
        .setParameterExceptionHandler((e, given) -> command.wrongUsage(e))
        .setExecutionExceptionHandler((e, failed, result) -> command.failed(e));
  }

  private static List<String> namesFor(CliContext context, String... args) {
    boolean tellsOfAll = args.length == 0 || args[0].equals(COMPLETION) || args[0].equals(MAN);
    if (!tellsOfAll && NAMES.contains(args[0])) {
      return List.of(args[0]);
    }
    boolean isCheckout = SourceCheckout.find(context.environment()).isPresent();
    return NAMES.stream()
        .filter(name -> isCheckout || !CheckoutCommands.NAMES.contains(name))
        .toList();
  }

  private static Object subcommand(String name, CliContext context) {
    return switch (name) {
      // Options after the program's name belong to the program, even without "--".
      case "run" -> new CommandLine(new RunCommand(context)).setStopAtPositional(true);
      case "cdi" -> new CommandLine(new CdiCommand(context)).setStopAtPositional(true);
      case "ls" -> new LsCommand(context);
      case "top" -> new TopCommand(context);
      case "usage" -> new UsageCommand(context);
      case "suspend" -> new SuspendCommand.Suspend(context);
      case "resume" -> new SuspendCommand.Resume(context);
      case "serve" -> new ServeCommand(context);
      case "devices" -> new DevicesCommand(context);
      case "mig" -> MigCommand.commandLine(context);
      case "doctor" -> new DoctorCommand(context);
      case "simulate" -> new SimulateCommand(context);
      case "fleet" -> FleetCommand.commandLine(context);
      case COMPLETION -> new CompletionCommand(context);
      case MAN -> new ManCommand(context);
      default -> CheckoutCommands.find(name, context);
    };
  }

  private static PrintWriter writer(PrintStream stream) {
    return new PrintWriter(new OutputStreamWriter(stream, UTF_8), true);
  }

  /** Fails: a subcommand is required. */
  @Override
  public void run() {
    throw new ParameterException(spec.commandLine(), "no command is given");
  }

  private int wrongUsage(ParameterException e) {
    PrintWriter err = e.getCommandLine().getErr();
    err.print(context.console().errAnsi().string("@|bold,red vgpu:|@ "));
    err.flush();
    context.console().err().println(message(e));
    UnmatchedArgumentException.printSuggestions(e, err);
    String name = e.getCommandLine().getCommandSpec().qualifiedName();
    err.println("Run '" + name + " --help' to see what can be given.");
    return CommandLine.ExitCode.USAGE;
  }

  private static String message(ParameterException e) {
    return e instanceof UnmatchedArgumentException unmatched
            && !unmatched.isUnknownOption()
            && !e.getCommandLine().getSubcommands().isEmpty()
        ? "there is no command '" + unmatched.getUnmatched().get(0) + "'"
        : describe(e);
  }

  private int failed(Exception e) {
    Console console = context.console();
    String message = e instanceof UserException ? e.getMessage() : describe(e);
    console.errDrawn().print(console.errAnsi().string("@|bold,red vgpu:|@ "));
    console.err().println(message);
    if (verbose || isSet(context.environment())) {
      console.err().println(stackTrace(e));
    } else if (!(e instanceof UserException)) {
      console.err().println("Run it again with " + VERBOSE + " to see more.");
    }
    return e instanceof UserException user ? user.exitCode() : CommandLine.ExitCode.SOFTWARE;
  }

  private static String describe(Exception e) {
    String message = e.getMessage();
    return message == null || message.isBlank() ? e.toString() : message;
  }

  private static String stackTrace(Exception e) {
    StringWriter text = new StringWriter();
    PrintWriter writer = new PrintWriter(text);
    Throwable shown = e;
    while (shown != null) {
      writer.println(shown);
      for (StackTraceElement frame : shown.getStackTrace()) {
        writer.println("    at " + frame);
      }
      shown = shown.getCause();
    }
    return text.toString();
  }

  private static boolean isSet(Map<String, String> environment) {
    String value = environment.getOrDefault(DEBUG, "");
    return !value.isEmpty() && !value.equals("0");
  }
}
