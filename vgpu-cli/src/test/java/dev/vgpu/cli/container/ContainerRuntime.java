package dev.vgpu.cli.container;

import static java.nio.charset.StandardCharsets.UTF_8;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

/**
 * A minimal container runtime: a separate root directory with a program and its libraries, a mount
 * namespace, and the edits of a CDI file. All mounts belong to the namespace and disappear with it.
 */
final class ContainerRuntime {
  private static final Pattern LIBRARY = Pattern.compile("(/[^ ()]+) \\(0x");

  private final Path root;
  private final List<String> script = new ArrayList<>(List.of("set -e"));

  private ContainerRuntime(Path root) {
    this.root = root;
  }

  /**
   * Runs a program in a container.
   *
   * @param args the CDI file; the root directory, which is filled; {@code own} for a new pid
   *     namespace, or {@code host}; the program and its arguments
   */
  public static void main(String[] args) throws IOException, InterruptedException {
    JsonNode file = new ObjectMapper().readTree(Path.of(args[0]).toFile());
    JsonNode edits = file.path("devices").path(0).path("containerEdits");
    ContainerRuntime runtime = new ContainerRuntime(Files.createDirectories(Path.of(args[1])));
    boolean ownPids = args[2].equals("own");
    Path program = Path.of(args[3]);
    runtime.copy(program);
    runtime.copyLibrariesOf(program);
    // A real image contains the whole C library; here only the needed libraries are copied, the
    // hook's included.
    for (JsonNode mount : edits.path("mounts")) {
      Path mounted = Path.of(mount.path("hostPath").asText());
      if (Files.isRegularFile(mounted) && mounted.toString().contains(".so")) {
        runtime.copyLibrariesOf(mounted);
      }
    }
    runtime.mountProc(ownPids);
    edits.path("mounts").forEach(runtime::mount);
    runtime.enter(edits.path("env"), List.of(args).subList(3, args.length));
    int code = runtime.run(ownPids);
    if (code != 0) {
      throw new IllegalStateException("the container ended with " + code);
    }
  }

  /** Copies the libraries that the loader would load for a file, to the same paths. */
  private void copyLibrariesOf(Path file) throws IOException, InterruptedException {
    Process ldd = new ProcessBuilder("ldd", file.toString()).start();
    Matcher libraries = LIBRARY.matcher(new String(ldd.getInputStream().readAllBytes(), UTF_8));
    while (libraries.find()) {
      copy(Path.of(libraries.group(1)));
    }
    ldd.waitFor();
  }

  private Path inside(Path path) {
    return root.resolve(Path.of("/").relativize(path));
  }

  private void copy(Path file) throws IOException {
    Path target = inside(file);
    if (!Files.exists(target)) {
      Files.createDirectories(target.getParent());
      Files.copy(file, target);
      target.toFile().setExecutable(true);
    }
  }

  private void mountProc(boolean own) throws IOException {
    Path proc = Files.createDirectories(root.resolve("proc"));
    script.add(own ? "mount -t proc proc " + proc : "mount --rbind /proc " + proc);
  }

  private void mount(JsonNode mount) {
    Path host = Path.of(mount.path("hostPath").asText());
    Path target = inside(Path.of(mount.path("containerPath").asText()));
    // Below another mount, the target may exist already.
    script.add("test -e '" + target + "' || mkdir -p '" + target.getParent() + "'");
    script.add(
        Files.isDirectory(host)
            ? "mkdir -p '" + target + "'"
            : "test -e '" + target + "' || : > '" + target + "'");
    script.add("mount --bind '" + host + "' '" + target + "'");
    for (JsonNode option : mount.path("options")) {
      if (option.asText().equals("ro")) {
        script.add("mount -o remount,bind,ro '" + target + "'");
      }
    }
  }

  private void enter(JsonNode variables, List<String> command) {
    StringBuilder line = new StringBuilder("exec env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin");
    variables.forEach(variable -> line.append(" '").append(variable.asText()).append("'"));
    line.append(" chroot '").append(root).append("'");
    command.forEach(word -> line.append(" '").append(word).append("'"));
    script.add(line.toString());
  }

  private int run(boolean ownPids) throws IOException, InterruptedException {
    List<String> command = new ArrayList<>(List.of("unshare", "--mount"));
    if (!System.getProperty("user.name", "").equals("root")) {
      command.add("--map-root-user");
    }
    if (ownPids) {
      command.addAll(List.of("--pid", "--fork"));
    }
    command.addAll(List.of("sh", "-c", String.join("\n", script)));
    return new ProcessBuilder(command).inheritIO().start().waitFor();
  }
}
