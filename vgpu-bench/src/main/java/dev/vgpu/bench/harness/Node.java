package dev.vgpu.bench.harness;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Comparator;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.stream.Stream;

/**
 * A separate run directory, the C program, and the children that run there. Closing it kills all of
 * them, and so does the end of this JVM. Safe for use by several threads.
 */
public final class Node implements AutoCloseable {
  /** How often a directory's removal is tried again. */
  private static final int REMOVALS = 50;

  private static final long REMOVE_AGAIN_US = 20_000;

  /** The variables that put a program under a virtual GPU; a bare program has none of them. */
  private static final List<String> OF_A_LEASE = List.of("LD_PRELOAD", "VGPU_LEASE");

  /** The path of a prebuilt C program, for machines without a compiler. */
  private static final String BUILT = "VGPU_BENCH_PROGRAM";

  /** The directory for nodes, instead of {@code /tmp}; a short path. */
  private static final String DIRECTORY = "VGPU_BENCH_DIR";

  /** The variables of vgpu that nodes' processes inherit, separated by commas; without it, none. */
  private static final String KEPT = "VGPU_BENCH_KEEP";

  private final Path directory;
  private final Path program;
  private final Map<String, String> settings;
  private final Set<Child> children = ConcurrentHashMap.newKeySet();
  private final Thread atExit = new Thread(this::endAndRemove, "end-of-the-children");
  private volatile Lateness lateness = Lateness.NONE;
  private volatile boolean ending;
  private boolean mounted;

  private Node(Path directory, Path program, Map<String, String> settings) {
    this.directory = directory;
    this.program = program;
    this.settings = new ConcurrentHashMap<>(settings);
  }

  /**
   * Creates a node.
   *
   * @param settings further environment variables for all its processes, for example {@code
   *     VGPU_EMULATOR}
   * @return the node; close it at the end
   * @throws IllegalStateException if there is no C compiler
   * @throws InterruptedException if this thread is interrupted
   */
  public static Node open(Map<String, String> settings) throws InterruptedException {
    try {
      String base = Objects.requireNonNullElse(System.getenv(DIRECTORY), "/tmp");
      Path directory = Files.createTempDirectory(Path.of(base), "vgpu-n");
      Files.createDirectory(directory.resolve("run"));
      Files.createDirectory(directory.resolve("c"));
      String built = System.getenv(BUILT);
      Path program = built == null ? ProgramSource.compile(directory.resolve("c")) : Path.of(built);
      Map<String, String> all = kept();
      all.putAll(settings);
      Node node = new Node(directory, program, all);
      Runtime.getRuntime().addShutdownHook(node.atExit);
      return node;
    } catch (IOException e) {
      throw new UncheckedIOException("cannot make a directory under /tmp", e);
    }
  }

  /**
   * Adds environment variables for all processes that are started from now on.
   *
   * @param variables their names and values
   */
  public void addSettings(Map<String, String> variables) {
    settings.putAll(variables);
  }

  /**
   * Extends the wait for all children that are started from now on by the machine's lateness.
   *
   * @param machine tells how late the machine is
   */
  public void setLateness(Lateness machine) {
    lateness = machine;
  }

  /**
   * Builds the C program.
   *
   * @param directory where the program goes
   * @return the program
   * @throws IllegalStateException if there is no C compiler, or it fails
   * @throws InterruptedException if this thread is interrupted
   */
  public static Path buildProgram(Path directory) throws InterruptedException {
    return ProgramSource.compile(directory);
  }

  private static Map<String, String> kept() {
    Map<String, String> kept = new HashMap<>();
    for (String name : Objects.requireNonNullElse(System.getenv(KEPT), "").split(",", -1)) {
      String value = name.isEmpty() ? null : System.getenv(name);
      if (value != null) {
        kept.put(name, value);
      }
    }
    return kept;
  }

  /** {@return the run directory} */
  public Path runDirectory() {
    return directory.resolve("run");
  }

  /** {@return the path of a file that children may share} */
  public Path file(String name) {
    return directory.resolve(name);
  }

  /** {@return the C program} */
  public Path program() {
    return program;
  }

  /**
   * Opens a pool in a separate JVM.
   *
   * @param settings of the pool: {@code strict} for turns that never overlap; {@code floor=PERCENT}
   *     for the offline floor
   * @return the JVM, with its pool open
   * @throws InterruptedException if this thread is interrupted
   */
  public PoolProcess openPool(String... settings) throws InterruptedException {
    List<String> command =
        new ArrayList<>(
            List.of(
                Path.of(System.getProperty("java.home", ""), "bin", "java").toString(),
                "-XX:TieredStopAtLevel=1",
                "-XX:+UseSerialGC",
                "-Xmn8m", // as ./vgpu serve
                "-Xshare:auto",
                "-cp",
                System.getProperty("java.class.path", ""),
                PoolMain.class.getName()));
    command.addAll(List.of(settings));
    return PoolProcess.open(this, start("pool", new ProcessBuilder(command), Map.of()));
  }

  /**
   * Starts the C program.
   *
   * @param environment selects where it runs, see {@link PoolProcess#acquire}
   * @param arguments its mode and the mode's arguments
   * @return the program
   */
  public Child start(Map<String, String> environment, String... arguments) {
    List<String> command = new ArrayList<>(List.of(program.toString()));
    command.addAll(Arrays.asList(arguments));
    return start(arguments[0], new ProcessBuilder(command), environment);
  }

  /**
   * Starts any program of this node.
   *
   * @param name its name in messages
   * @param builder its command
   * @param environment is added to its environment
   * @return the program
   */
  public Child start(String name, ProcessBuilder builder, Map<String, String> environment) {
    Map<String, String> variables = builder.environment();
    adapt(variables, environment);
    builder.redirectError(ProcessBuilder.Redirect.appendTo(file("stderr").toFile()));
    if (ending) {
      throw new IllegalStateException("nothing is started any more: this process is ending");
    }
    Child child = new Child(name, builder, lateness);
    children.removeIf(other -> !other.isAlive());
    children.add(child);
    return child;
  }

  /**
   * Turns an environment into that of a program of this node.
   *
   * @param variables the environment, for example of a process builder
   * @param environment variables to add, for example those that put the program under a virtual GPU
   */
  public void adapt(Map<String, String> variables, Map<String, String> environment) {
    variables.keySet().removeIf(key -> key.startsWith("VGPU_") && !key.equals("VGPU_HOME"));
    variables.put("VGPU_RUN_DIR", runDirectory().toString());
    variables.putAll(settings);
    environment.forEach((key, value) -> variables.put(key, expanded(key, value)));
  }

  private String expanded(String key, String value) {
    String inherited = Objects.requireNonNullElse(System.getenv(key), "");
    String own = settings.getOrDefault(key, inherited);
    String text = value.replace("${" + key + "}", own);
    return text.endsWith(":") ? text.substring(0, text.length() - 1) : text;
  }

  /**
   * {@return the variables that let a program use the same GPU without a virtual GPU}
   *
   * @param leased those of a virtual GPU
   */
  public static Map<String, String> bare(Map<String, String> leased) {
    Map<String, String> bare = new HashMap<>(leased);
    OF_A_LEASE.forEach(bare::remove);
    String driver = leased.get("VGPU_CUDA_DRIVER");
    if (driver != null) {
      bare.put("LD_LIBRARY_PATH", Objects.requireNonNull(Path.of(driver).getParent()).toString());
    }
    return bare;
  }

  /** {@return the process that holds the seat according to the lock file; 0 if there is none} */
  public long seatHolder() {
    try {
      String text = Files.readString(runDirectory().resolve("seat.holder")).strip();
      String digits = text.replaceFirst("(?s)^\\D*(\\d+).*$", "$1");
      return digits.isEmpty() || !digits.matches("\\d+") ? 0 : Long.parseLong(digits);
    } catch (IOException e) {
      return 0;
    }
  }

  /** {@return what all children wrote on standard error} */
  public String errors() {
    try {
      return Files.readString(file("stderr"), StandardCharsets.ISO_8859_1);
    } catch (IOException e) {
      return "";
    }
  }

  /**
   * Mounts an in-memory file system on the run directory, which can be filled up. Works only in a
   * separate mount namespace, so that the machine's mounts stay unchanged.
   *
   * @param bytes its size
   * @return whether it was mounted
   * @throws InterruptedException if this thread is interrupted
   */
  public boolean mountRunDirectory(long bytes) throws InterruptedException {
    try {
      Path self = Path.of("/proc/self/ns/mnt");
      long parent = ProcessHandle.current().parent().map(ProcessHandle::pid).orElse(1L);
      Path others = Path.of("/proc", Long.toString(parent), "ns/mnt");
      if (Files.readSymbolicLink(self).equals(Files.readSymbolicLink(others))) {
        return false;
      }
      String size = "mode=0700,size=" + bytes;
      mounted = succeeds("mount", "-t", "tmpfs", "-o", size, "vgpu", runDirectory().toString());
      return mounted;
    } catch (IOException e) {
      return false;
    }
  }

  private boolean succeeds(String... command) throws IOException, InterruptedException {
    return new ProcessBuilder(command)
            .redirectErrorStream(true)
            .redirectOutput(ProcessBuilder.Redirect.appendTo(file("stderr").toFile()))
            .start()
            .waitFor()
        == 0;
  }

  /**
   * Compiles a library from this module's C sources.
   *
   * @param name its source's name, without the ending
   * @return the library, to be preloaded
   * @throws InterruptedException if this thread is interrupted
   */
  public Path library(String name) throws InterruptedException {
    return ProgramSource.compileLibrary(name, directory.resolve("c"));
  }

  /**
   * Includes processes that children left behind: any process whose environment names our run
   * directory.
   */
  private void killAll() {
    children.forEach(Child::close);
    String ours = "VGPU_RUN_DIR=" + runDirectory();
    long self = ProcessHandle.current().pid();
    ProcessHandle.allProcesses()
        .filter(process -> process.pid() != self && isIn(process.pid(), ours))
        .forEach(ProcessHandle::destroyForcibly);
  }

  private static boolean isIn(long pid, String variable) {
    try {
      Path environment = Path.of("/proc", Long.toString(pid), "environ");
      String text = Files.readString(environment, StandardCharsets.ISO_8859_1);
      return List.of(text.split("\0", -1)).contains(variable);
    } catch (IOException e) {
      return false; // it has ended, or belongs to another user
    }
  }

  private void endAndRemove() {
    ending = true;
    killAll();
    try {
      if (mounted && !succeeds("umount", "-l", runDirectory().toString())) {
        return;
      }
      mounted = false;
    } catch (IOException | InterruptedException e) {
      return; // The mount disappears with our namespace; the empty directory stays.
    }
    try {
      remove();
      for (int i = 0; i < REMOVALS && Files.exists(directory); i++) {
        NanoClock.sleepMicros(REMOVE_AGAIN_US); // a compiler may still have written into it
        remove();
      }
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
    }
  }

  private void remove() {
    try (Stream<Path> files = Files.walk(directory)) {
      files.sorted(Comparator.reverseOrder()).forEach(path -> path.toFile().delete());
    } catch (IOException | UncheckedIOException e) {
      // Files that cannot be removed from /tmp stay there.
    }
  }

  /** Kills all children and removes the directory. */
  @Override
  public void close() {
    endAndRemove();
    try {
      Runtime.getRuntime().removeShutdownHook(atExit);
    } catch (IllegalStateException e) {
      // This JVM is already shutting down.
    }
  }
}
