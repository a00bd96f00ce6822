package dev.vgpu.nvml.mps;

import dev.vgpu.VgpuException;
import dev.vgpu.files.TrustedFiles;
import dev.vgpu.request.GpuId;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.FileAlreadyExistsException;
import java.nio.file.Files;
import java.nio.file.LinkOption;
import java.nio.file.NoSuchFileException;
import java.nio.file.Path;
import java.nio.file.attribute.PosixFilePermissions;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import java.util.stream.Stream;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * The MPS control daemon of one GPU and this user, in its own directory. It outlives the holder of
 * the seat, and the next holder finds it there. Confined to one thread at a time.
 */
final class MpsDaemon {
  private static final Logger log = LoggerFactory.getLogger(MpsDaemon.class);
  private static final String PID_FILE = "nvidia-cuda-mps-control.pid";
  private static final String GPU_FILE = "gpu";
  private static final String COMMAND = "nvidia-cuda-mps";
  private static final int MOST_RECORD_BYTES = 256;
  private static final int MOST_ENVIRONMENT_BYTES = 2 << 20;
  private static final Path PROC = Path.of("/proc");

  /** So many missed answers in a row mean that it hangs; a single one, that the machine is busy. */
  private static final int MOST_MISSED = 3;

  private static final long EXIT_MS = 5_000;

  private final MpsTool tool;
  private final GpuId gpu;
  private final Path pipes;
  private final Path logs;

  /** The names of the leases that use it, kept for the next holder of the seat. */
  private final Path users;

  /** The directories of all leases of the node. */
  private final Path leases;

  MpsDaemon(MpsTool tool, Path directory, GpuId gpu) {
    this.tool = tool;
    this.gpu = gpu;
    Path own = own(directory, gpu);
    this.pipes = own.resolve("pipe");
    this.logs = own.resolve("log");
    this.users = own.resolve("leases");
    this.leases = directory.resolveSibling("leases");
  }

  /** Hashes the GPU's name: it is long, and a socket's path must be short. */
  private static Path own(Path directory, GpuId gpu) {
    String name = gpu.value();
    int backwards = new StringBuilder(name).reverse().toString().hashCode();
    return directory.resolve(String.format(Locale.ROOT, "%08x%08x", name.hashCode(), backwards));
  }

  /** {@return the GPUs of the daemons that were started and not stopped} */
  static Set<GpuId> directories(Path directory) {
    Set<GpuId> gpus = new HashSet<>();
    try (Stream<Path> all = Files.list(directory)) {
      for (Path own : all.toList()) {
        if (Files.exists(own.resolve("pipe").resolve(PID_FILE), LinkOption.NOFOLLOW_LINKS)) {
          gpuOf(own).ifPresent(gpus::add);
        }
      }
    } catch (IOException | UncheckedIOException e) {
      log.debug("no MPS daemons are known: directory={}", directory, e);
    }
    return gpus;
  }

  /** An unreadable directory must not hide the others. */
  private static Optional<GpuId> gpuOf(Path own) {
    try {
      String name = TrustedFiles.readText(own.resolve(GPU_FILE), MOST_RECORD_BYTES);
      return Optional.of(new GpuId(name.strip()));
    } catch (IOException | IllegalArgumentException e) {
      log.warn("it cannot be told which GPU an MPS daemon is for: {}: {}", own, e.getMessage());
      return Optional.empty();
    }
  }

  /** Notes that a lease uses the daemon. */
  void use(String lease) {
    try {
      prepareDirectories();
      Files.createDirectories(users);
      Files.writeString(users.resolveSibling(GPU_FILE), gpu.value());
      Files.writeString(users.resolve(lease), "");
    } catch (IOException e) {
      throw new VgpuException("a lease under MPS cannot be noted: " + e.getMessage(), e);
    }
  }

  /** Notes that a lease no longer uses the daemon. */
  void leave(String lease) {
    try {
      boolean ignored = Files.deleteIfExists(users.resolve(lease));
    } catch (IOException e) {
      log.debug("what says that a lease stands on MPS cannot be removed: lease={}", lease, e);
    }
  }

  /** {@return whether a lease that uses it may still exist, also one that is yet to be restored} */
  boolean isUsed() {
    try (Stream<Path> all = Files.list(users)) {
      return all.anyMatch(user -> !Files.notExists(leases.resolve(user.getFileName())));
    } catch (NoSuchFileException e) {
      return false;
    } catch (IOException | UncheckedIOException e) {
      log.warn("it cannot be told who uses an MPS daemon: gpu={}: {}", gpu, e.toString());
      return true;
    }
  }

  GpuId gpu() {
    return gpu;
  }

  /** {@return the variables by which clients find it} */
  Map<String, String> clientEnvironment() {
    Map<String, String> variables = new LinkedHashMap<>();
    variables.put("CUDA_MPS_PIPE_DIRECTORY", pipes.toString());
    variables.put("CUDA_MPS_LOG_DIRECTORY", logs.toString());
    return variables;
  }

  private Map<String, String> environment() {
    Map<String, String> variables = clientEnvironment();
    variables.put("CUDA_VISIBLE_DEVICES", gpu.value());
    return variables;
  }

  /**
   * Makes sure that the daemon runs and answers.
   *
   * @return why it had to be restarted; empty if it runs, or was not started before
   * @throws VgpuException if that cannot be told or done now; a daemon that lives stays as it is
   */
  Optional<String> ensure() {
    prepareDirectories();
    Optional<String> failure = Optional.empty();
    if (Files.exists(pipes.resolve(PID_FILE), LinkOption.NOFOLLOW_LINKS)) {
      try {
        ask();
        return Optional.empty();
      } catch (MpsTool.HungException e) {
        failure = Optional.of("it hung");
        boolean ignored = kill();
      } catch (MpsTool.NotRunException e) {
        throw e;
      } catch (VgpuException e) {
        if (process().isPresent()) {
          throw e; // without its file, nothing could command it any more
        }
        failure = Optional.of("it was gone");
        log.debug("no MPS daemon answers: gpu={}", gpu, e);
      }
      removePidFile();
    }
    tool.startDaemon(environment());
    String ignored = tool.command(environment(), "set_default_active_thread_percentage 100");
    log.info("MPS control daemon started: gpu={} directory={}", gpu, pipes);
    return failure;
  }

  /** Takes at most {@link #MOST_MISSED} times the tool's time limit. */
  private void ask() {
    for (int missed = 1; true; missed++) {
      try {
        String ignored = tool.command(environment(), "get_server_list");
        return;
      } catch (MpsTool.HungException e) {
        if (missed == MOST_MISSED) {
          throw e;
        }
        log.info("an MPS daemon is slow, and is asked again: gpu={}", gpu, e);
      }
    }
  }

  private void prepareDirectories() {
    for (Path directory : List.of(pipes, logs)) {
      try {
        Files.createDirectories(
            directory,
            PosixFilePermissions.asFileAttribute(PosixFilePermissions.fromString("rwx------")));
        checkOwned(directory);
      } catch (FileAlreadyExistsException e) {
        throw new VgpuException("not a directory: path=" + directory, e);
      } catch (IOException e) {
        throw new VgpuException(
            "the directory for MPS cannot be used: path=" + directory + ": " + e.getMessage(), e);
      }
    }
  }

  /** A daemon serves one user: another user's would not serve this one's programs. */
  private static void checkOwned(Path directory) throws IOException {
    Object owner = Files.getAttribute(directory, "unix:uid", LinkOption.NOFOLLOW_LINKS);
    Object self = Files.getAttribute(PROC.resolve("self"), "unix:uid");
    if (!owner.equals(self)) {
      throw new VgpuException(
          "the MPS daemon of this directory is another user's: path="
              + directory
              + " uid="
              + owner
              + "; let that user hold the seat, or use another run directory");
    }
  }

  /** {@return the running servers; none before the first client} */
  List<Long> servers() {
    return pids(tool.command(environment(), "get_server_list"));
  }

  /** {@return the client processes of a server} */
  List<Long> clients(long server) {
    return pids(tool.command(environment(), "get_client_list " + server));
  }

  /** Starts a server before the first client. */
  void startServer() {
    try {
      Object uid = Files.getAttribute(PROC.resolve("self"), "unix:uid");
      String ignored = tool.command(environment(), "start_server -uid " + uid);
    } catch (IOException e) {
      throw new VgpuException("this process's user is not known: " + e.getMessage(), e);
    }
  }

  static List<Long> pids(String text) {
    List<Long> pids = new ArrayList<>();
    for (String line : text.split("\\R", -1)) {
      String word = line.strip();
      if (word.matches("[1-9][0-9]{0,9}")) { // else it is one of several messages
        pids.add(Long.parseLong(word));
      }
    }
    return pids;
  }

  /** Stops the daemon and its servers; never throws. */
  void stop() {
    if (!Files.exists(pipes.resolve(PID_FILE), LinkOption.NOFOLLOW_LINKS)) {
      return;
    }
    try {
      String ignored = tool.command(environment(), "quit");
    } catch (VgpuException e) {
      log.warn("the MPS control daemon did not stop and is killed: gpu={}", gpu, e);
      boolean isKnown = kill();
      if (isKnown || !(e instanceof MpsTool.NotRunException)) { // else it may live: later
        removePidFile();
      }
    }
  }

  /** {@return the daemon's process} Empty if the pid is now another process's. */
  Optional<ProcessHandle> process() {
    try {
      long pid =
          Long.parseLong(TrustedFiles.readText(pipes.resolve(PID_FILE), MOST_RECORD_BYTES).strip());
      String name = Files.readString(PROC.resolve(pid + "/comm"));
      String variables =
          new String(
              TrustedFiles.readAtMost(PROC.resolve(pid + "/environ"), MOST_ENVIRONMENT_BYTES),
              StandardCharsets.UTF_8);
      boolean own = variables.contains("CUDA_MPS_PIPE_DIRECTORY=" + pipes + "\0");
      return name.startsWith(COMMAND) && own ? ProcessHandle.of(pid) : Optional.empty();
    } catch (IOException | NumberFormatException e) {
      return Optional.empty();
    }
  }

  /** {@return whether it was there} */
  private boolean kill() {
    Optional<ProcessHandle> process = process();
    process.ifPresent(MpsDaemon::killWithServers);
    return process.isPresent();
  }

  private static void killWithServers(ProcessHandle daemon) {
    List<ProcessHandle> servers = daemon.children().toList();
    boolean killed = daemon.destroyForcibly();
    for (ProcessHandle server : servers) {
      killed &= server.destroyForcibly();
    }
    log.debug("an MPS control daemon that hung is killed: pid={} all={}", daemon.pid(), killed);
    try { // while it is there, another one does not start
      ProcessHandle ignored = daemon.onExit().get(EXIT_MS, TimeUnit.MILLISECONDS);
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
    } catch (ExecutionException | TimeoutException e) {
      log.warn("an MPS control daemon that was killed is still there: pid={}", daemon.pid(), e);
    }
  }

  private void removePidFile() {
    try {
      boolean ignored = Files.deleteIfExists(pipes.resolve(PID_FILE));
    } catch (IOException e) {
      throw new VgpuException("cannot remove what an MPS daemon left: " + e.getMessage(), e);
    }
  }
}
