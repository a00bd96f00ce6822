package dev.vgpu.cli;

import static java.nio.charset.StandardCharsets.UTF_8;
import static org.assertj.core.api.Assertions.assertThat;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import dev.vgpu.cli.time.NanoClock;
import java.io.File;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.attribute.PosixFilePermissions;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.List;
import java.util.concurrent.TimeUnit;
import java.util.function.BooleanSupplier;
import java.util.stream.Collectors;
import java.util.stream.Stream;

/**
 * A run directory with its own emulated GPUs, and the {@code vgpu} commands that run there as
 * processes. Closing it terminates all of them.
 */
public final class CommandNode implements AutoCloseable {
  /** How much memory a context takes on the emulated GPUs. */
  public static final long CONTEXT_BYTES = 64L << 20;

  private static final String SETTINGS = "devices=2,memory=4GiB,context=64MiB";
  private static final long TIMEOUT_SECONDS = 60;
  private static final ObjectMapper JSON = new ObjectMapper();

  private final Path directory;
  private final List<Command> commands = new ArrayList<>();

  private CommandNode(Path directory) {
    this.directory = directory;
  }

  public static CommandNode open() throws IOException {
    return new CommandNode(Files.createTempDirectory(Path.of("/tmp"), "vgpu-c"));
  }

  /**
   * A node whose directory root has opened to a group, and whose emulated GPUs the group shares.
   * Only root can make one.
   */
  static CommandNode openForGroup(int group) throws IOException {
    CommandNode node = open();
    Files.setPosixFilePermissions(node.directory, PosixFilePermissions.fromString("rwxr-xr-x"));
    for (Path each : List.of(node.runDirectory(), node.runDirectory().resolve("emulator"))) {
      Files.createDirectory(each);
      Files.setAttribute(each, "unix:gid", group);
      Files.setPosixFilePermissions(each, PosixFilePermissions.fromString("rwxr-x---"));
    }
    return node;
  }

  /** The directory that its commands share. */
  public Path runDirectory() {
    return directory.resolve("run");
  }

  /** A process of this node. */
  public final class Command {
    private final Process process;
    private final Path out;
    private final Path err;

    private Command(ProcessBuilder builder, int number, List<String> variables) throws IOException {
      this.out = directory.resolve(number + ".out");
      this.err = directory.resolve(number + ".err");
      builder.environment().keySet().removeIf(name -> name.startsWith("VGPU_"));
      builder.environment().remove("LD_PRELOAD");
      builder.environment().put("VGPU_RUN_DIR", directory.resolve("run").toString());
      builder.environment().put("VGPU_EMULATOR", SETTINGS);
      for (String variable : variables) {
        int equals = variable.indexOf('=');
        builder.environment().put(variable.substring(0, equals), variable.substring(equals + 1));
      }
      this.process = builder.redirectOutput(out.toFile()).redirectError(err.toFile()).start();
    }

    public long pid() {
      return process.pid();
    }

    public List<ProcessHandle> descendants() {
      return process.descendants().toList();
    }

    public String out() {
      return read(out);
    }

    public String err() {
      return read(err);
    }

    /** {@return the exit code; waits until the process has ended} */
    public int exitCode() throws InterruptedException {
      assertThat(process.waitFor(TIMEOUT_SECONDS, TimeUnit.SECONDS)).as("%s", this).isTrue();
      return process.exitValue();
    }

    /** Expects that the process ends with exit code 0. */
    public Command succeeds() throws InterruptedException {
      assertThat(exitCode()).as("%s", this).isZero();
      return this;
    }

    public JsonNode json() throws IOException {
      return JSON.readTree(out());
    }

    /** Waits until the process has printed a text. */
    public Command prints(String text) throws InterruptedException {
      await(() -> out().contains(text) || !process.isAlive(), this);
      assertThat(out()).as("%s", this).contains(text);
      return this;
    }

    public void signal(String name) throws IOException, InterruptedException {
      signalProcess(name, process.pid());
    }

    @Override
    public String toString() {
      return "out: " + out() + "\nerr: " + err();
    }
  }

  public static void signalProcess(String name, long pid) throws IOException, InterruptedException {
    // The shell's built-in kill: a minimal system has no kill program.
    assertThat(new ProcessBuilder("sh", "-c", "kill -" + name + " " + pid).start().waitFor())
        .isZero();
  }

  /** Waits until a condition holds. */
  public static void await(BooleanSupplier condition, Object otherwise)
      throws InterruptedException {
    NanoClock clock = NanoClock.system();
    long endNs = clock.nowNs() + TimeUnit.SECONDS.toNanos(TIMEOUT_SECONDS);
    while (!condition.getAsBoolean()) {
      assertThat(clock.nowNs()).as("%s", otherwise).isLessThan(endNs);
      clock.sleepUntil(clock.nowNs() + TimeUnit.MILLISECONDS.toNanos(20));
    }
  }

  private static String read(Path file) {
    try {
      return Files.readString(file, UTF_8);
    } catch (IOException e) {
      return "";
    }
  }

  /** Starts {@code vgpu} with these arguments. */
  public Command vgpu(String... arguments) throws IOException {
    return java("dev.vgpu.cli.VgpuCommand", arguments);
  }

  /** Starts {@code vgpu} with these arguments, and additional variables: {@code NAME=VALUE}. */
  public Command vgpuWith(List<String> variables, String... arguments) throws IOException {
    return java(variables, "dev.vgpu.cli.VgpuCommand", arguments);
  }

  /** Starts {@code vgpu} with these arguments; its process may have so many files open. */
  public Command vgpuWithFiles(int files, String... arguments) throws IOException {
    List<String> command =
        new ArrayList<>(List.of("sh", "-c", "ulimit -n " + files + " && exec \"$@\"", "sh"));
    command.addAll(javaCommand());
    command.add("dev.vgpu.cli.VgpuCommand");
    command.addAll(List.of(arguments));
    return start(command, List.of());
  }

  /** Starts {@code vgpu run} with options, then a program. */
  public Command run(String terms, String... program) throws IOException {
    List<String> arguments = new ArrayList<>(List.of("run"));
    arguments.addAll(List.of(terms.split(" ")));
    arguments.add("--");
    arguments.addAll(List.of(program));
    return vgpu(arguments.toArray(String[]::new));
  }

  /** Starts a main class. */
  public Command java(String mainClass, String... arguments) throws IOException {
    return java(List.of(), mainClass, arguments);
  }

  /** Starts a main class with additional variables: {@code NAME=VALUE}. */
  public Command javaWith(List<String> variables, String mainClass, String... arguments)
      throws IOException {
    return java(variables, mainClass, arguments);
  }

  private Command java(List<String> variables, String mainClass, String... arguments)
      throws IOException {
    List<String> command = new ArrayList<>(javaCommand());
    command.add(mainClass);
    command.addAll(List.of(arguments));
    return start(command, variables);
  }

  /** Starts a command line with additional variables: {@code NAME=VALUE}. */
  Command start(List<String> command, List<String> variables) throws IOException {
    Command started = new Command(new ProcessBuilder(command), commands.size(), variables);
    commands.add(started);
    return started;
  }

  /**
   * {@return the command line of a JVM with the class path of the tests; the path is its last word}
   */
  public static List<String> javaCommand() {
    List<String> command = new ArrayList<>();
    command.add(Path.of(System.getProperty("java.home"), "bin", "java").toString());
    command.addAll(List.of("-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC"));
    String archive = System.getProperty("vgpu.archive", "");
    if (!archive.isEmpty()) {
      command.add("-XX:SharedArchiveFile=" + archive); // the JVM starts without if it does not fit
    }
    command.addAll(List.of("-cp", classPath()));
    return command;
  }

  /** The class path of the tests, with what the command's archive has first: the jars. */
  private static String classPath() {
    List<String> entries =
        List.of(System.getProperty("java.class.path").split(File.pathSeparator, -1));
    return Stream.concat(
            entries.stream().filter(each -> each.endsWith(".jar")),
            entries.stream().filter(each -> !each.endsWith(".jar")))
        .collect(Collectors.joining(File.pathSeparator));
  }

  /** {@return the path of a sample program} */
  public static String program(String name) {
    return Path.of(System.getProperty("vgpu.home"), "samples/cuda-programs/target/programs", name)
        .toString();
  }

  public JsonNode leases() throws IOException, InterruptedException {
    return vgpu("ls", "--json").succeeds().json().path("leases");
  }

  @Override
  public void close() throws IOException {
    for (Command command : commands) {
      command.descendants().forEach(ProcessHandle::destroyForcibly);
      command.process.destroyForcibly().onExit().join(); // it writes files until then
    }
    try (Stream<Path> files = Files.walk(directory)) {
      files.sorted(Comparator.reverseOrder()).forEach(path -> path.toFile().delete());
    }
  }
}
