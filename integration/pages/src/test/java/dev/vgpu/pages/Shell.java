package dev.vgpu.pages;

import static java.nio.charset.StandardCharsets.UTF_8;
import static org.assertj.core.api.Assertions.assertThat;

import java.io.BufferedReader;
import java.io.File;
import java.io.IOException;
import java.io.Writer;
import java.lang.ProcessBuilder.Redirect;
import java.net.ServerSocket;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.attribute.PosixFilePermissions;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.TimeUnit;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import java.util.stream.Stream;

/**
 * A reader's terminal: a directory with links to the checkout's files, so that commands write
 * nothing there, and two emulated GPUs. Servers stay until it is closed. Programs that would run
 * for some seconds run for one, and a program of a sample stands in for the reader's.
 */
final class Shell implements AutoCloseable {
  private static final long TIMEOUT_SECONDS = 120;
  private static final Pattern EXPORT = Pattern.compile("export (\\w+)=(.*)");
  private static final Pattern SERVER =
      Pattern.compile(".*(vgpu serve.*|InferenceServer .*|ModelService|[^&]&)");

  /** The exit codes that lines have according to the pages, where 0 is not the only one. */
  private static final Map<String, List<Integer>> EXITS =
      Map.of(
          "(\\./)?vgpu doctor", List.of(0, 1),
          "\\./vgpu run --explain .*faults:isolated", List.of(69));

  private final Path directory;
  private final Map<String, String> variables = new LinkedHashMap<>();
  private final Map<Process, String> servers = new LinkedHashMap<>();
  private final List<Path> links = new ArrayList<>();
  private final String httpPort;
  private final String metricsPort;

  private Shell(Path home, Path directory) throws IOException {
    this.directory = directory.resolve("checkout");
    Path programs = Files.createDirectories(directory.resolve("bin"));
    Files.createDirectory(this.directory);
    for (String each : List.of("vgpu", "samples", "vgpu-cli")) {
      link(this.directory.resolve(each), home.resolve(each));
    }
    Path meters = jar(home.resolve("vgpu-micrometer/target"));
    link(this.directory.resolve(meters.getFileName()), meters);
    link(programs.resolve("vgpu"), home.resolve("vgpu"));
    Path python = programs.resolve("python3");
    String spin = home + "/samples/cuda-programs/target/programs/spin";
    Files.writeString(
        python,
        "#!/bin/sh\n[ ! -e \"$1\" ] || exec /usr/bin/env PATH=\"${PATH#*:}\" python3 \"$@\"\n"
            + ("exec " + spin + " --us 500 --seconds 1\n"),
        UTF_8);
    Files.setPosixFilePermissions(python, PosixFilePermissions.fromString("rwxr-xr-x"));
    link(programs.resolve("tritonserver"), python);
    Files.writeString(directory.resolve(".curlrc"), "fail\nretry = 60\nretry-connrefused\n", UTF_8);
    this.httpPort = freePort();
    this.metricsPort = freePort();
    String path =
        String.join(
            File.pathSeparator,
            programs.toString(),
            System.getProperty("java.home") + "/bin",
            System.getenv("PATH"),
            System.getenv().getOrDefault("VGPU_PROMETHEUS", "/usr/bin"));
    variables.put("PATH", path);
    variables.put("JAVA_HOME", System.getProperty("java.home"));
    variables.put("CURL_HOME", directory.toString());
    variables.put("SERVER_PORT", httpPort);
    variables.put("VGPU_RUN_DIR", directory.resolve("run").toString());
    variables.put("VGPU_EMULATOR", "devices=2,memory=80GiB");
    // The script builds nothing, so that the test runs what is already built.
    variables.put("VGPU_BUILDING", "1");
  }

  static Shell open(Path home, Path directory) throws IOException {
    return new Shell(home, directory);
  }

  private void link(Path place, Path target) throws IOException {
    links.add(Files.createSymbolicLink(place, target));
  }

  /** The module's jar: the shortest name, the others being of its sources and its Javadoc. */
  private static Path jar(Path folder) throws IOException {
    try (Stream<Path> files = Files.list(folder)) {
      return files
          .filter(file -> file.toString().endsWith(".jar"))
          .min(Comparator.comparingInt(file -> file.toString().length()))
          .orElseThrow();
    }
  }

  private static String freePort() throws IOException {
    try (ServerSocket socket = new ServerSocket(0)) {
      return Integer.toString(socket.getLocalPort());
    }
  }

  Path directory() {
    return directory;
  }

  /** Whether this machine can run the command. */
  boolean succeeds(String command) throws IOException {
    Process probe = builder(command).redirectOutput(Redirect.DISCARD).start();
    return ends(probe) && probe.exitValue() == 0;
  }

  /** Whether the process ends by itself; nothing of it is left afterwards. */
  private static boolean ends(Process process) {
    try {
      return process.waitFor(TIMEOUT_SECONDS, TimeUnit.SECONDS);
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
      return false;
    } finally {
      process.descendants().forEach(ProcessHandle::destroyForcibly);
      process.destroyForcibly();
    }
  }

  /** Runs a line of a page, until it has ended or, if it is a server, until it says something. */
  void run(String line) throws IOException {
    Matcher export = EXPORT.matcher(line);
    Path output = Files.createTempFile(directory.getParent(), "line", ".out");
    if (export.matches()) {
      variables.put(export.group(1), export.group(2));
    } else if (SERVER.matcher(line).matches()) {
      Process server = builder("exec " + line.replaceFirst(" &$", "")).start();
      servers.put(server, line);
      BufferedReader lines = server.inputReader(UTF_8);
      assertThat(line.endsWith("&") ? line : lines.readLine()).as(line).isNotNull();
      Thread rest = new Thread(() -> drain(lines), "output of " + line);
      rest.setDaemon(true);
      rest.start();
    } else {
      Process process = builder(line).redirectOutput(output.toFile()).start();
      assertThat(ends(process)).as("%s%n%s", line, Files.readString(output, UTF_8)).isTrue();
      assertThat(process.exitValue())
          .as("%s%n%s", line, Files.readString(output, UTF_8))
          .isIn(exits(line));
    }
  }

  private static void drain(BufferedReader lines) {
    try {
      lines.transferTo(Writer.nullWriter());
    } catch (IOException e) {
      // The server has ended.
    }
  }

  private static List<Integer> exits(String line) {
    return EXITS.entrySet().stream()
        .filter(each -> line.matches(each.getKey() + ".*"))
        .findFirst()
        .map(Map.Entry::getValue)
        .orElse(List.of(0));
  }

  private ProcessBuilder builder(String line) {
    String here =
        line.replaceAll("--seconds (5|20)\\b", "--seconds 1")
            .replaceAll("vgpu top(?! --count)", "vgpu top --count 2")
            .replace("/tmp/", directory.getParent() + "/")
            .replace("8080", httpPort)
            .replace("9400", metricsPort)
            .replaceAll("\\bPID\\b", pid());
    ProcessBuilder builder =
        new ProcessBuilder("bash", "-e", "-o", "pipefail", "-c", here)
            .directory(directory.toFile());
    builder.environment().keySet().removeIf(name -> name.startsWith("VGPU_"));
    builder.environment().remove("LD_PRELOAD");
    builder.environment().putAll(variables);
    return builder.redirectErrorStream(true);
  }

  /** The process id of the first server. */
  private String pid() {
    return servers.keySet().stream().findFirst().map(each -> "" + each.pid()).orElse("PID");
  }

  /** Terminates the servers, which end in order, and removes the links. */
  @Override
  public void close() throws IOException {
    for (Map.Entry<Process, String> each : servers.entrySet()) {
      Process server = each.getKey();
      server.destroy();
      assertThat(ends(server)).as(each.getValue()).isTrue();
      int terminated = each.getValue().contains("vgpu serve") ? 0 : 128 + 15;
      assertThat(server.exitValue()).as(each.getValue()).isIn(0, terminated);
    }
    for (Path link : links) {
      Files.delete(link);
    }
  }
}
