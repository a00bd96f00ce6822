package dev.vgpu.cli.doctor;

import static java.nio.charset.StandardCharsets.UTF_8;

import java.io.IOException;
import java.io.OutputStream;
import java.io.UncheckedIOException;
import java.nio.channels.Channels;
import java.nio.file.Files;
import java.nio.file.LinkOption;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.nio.file.attribute.PosixFilePermissions;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.EnumSet;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import java.util.regex.Pattern;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import java.util.zip.ZipEntry;
import java.util.zip.ZipOutputStream;
import org.jspecify.annotations.Nullable;

/**
 * The file that a user attaches to a problem report. Of the environment it contains only variables
 * that are known to hold no secret. It contains no program's arguments, no home directory, and
 * neither the user's nor the host's name; the same goes for the user that called {@code sudo}.
 * Confined to one thread.
 */
public final class Bundle {
  /** Variables whose values are settings. Other variables are left out, names included. */
  private static final Set<String> TOLD =
      Set.of(
          "CUDA_VISIBLE_DEVICES",
          "CUDA_MPS_PIPE_DIRECTORY",
          "CUDA_MPS_LOG_DIRECTORY",
          "NVIDIA_VISIBLE_DEVICES",
          "NVIDIA_DRIVER_CAPABILITIES",
          "LD_LIBRARY_PATH",
          "LD_PRELOAD",
          "VGPU_RUN_DIR",
          "VGPU_NVML",
          "VGPU_CUDA_DRIVER",
          "VGPU_EMULATOR",
          "VGPU_EMULATOR_DIR",
          "VGPU_LEVEL2",
          "VGPU_EXPRESS_LANE",
          "VGPU_CONTEXT_MEMORY",
          "VGPU_MPS_CONTROL",
          "XDG_RUNTIME_DIR");

  private static final int LEAST_REDACTED = 3;
  private static final int MOST_FILES = 2_000;

  private final Map<String, String> environment;
  private final Map<String, String> redacted = new LinkedHashMap<>();
  private final Map<String, String> files = new LinkedHashMap<>();

  /**
   * Creates an empty bundle.
   *
   * @param environment this process's environment variables
   * @param host this machine's name; may be empty
   */
  public Bundle(Map<String, String> environment, String host) {
    this(
        environment,
        host,
        People.of(
            environment,
            System.getProperty("user.name", ""),
            System.getProperty("user.home", ""),
            Path.of("/etc/passwd")));
  }

  Bundle(Map<String, String> environment, String host, People people) {
    this.environment = environment;
    // The longest first: one directory may contain another, and most contain their owner's name.
    people.homes().stream()
        .sorted(Comparator.comparingInt(String::length).reversed())
        .forEach(home -> redact(home, "~"));
    people.names().forEach(name -> redact(name, "<user>"));
    redact(environment.get("HOSTNAME"), "<host>");
    redact(host, "<host>");
  }

  private void redact(@Nullable String text, String by) {
    if (text == null || text.length() < LEAST_REDACTED) {
      return;
    }
    if (!text.equals("root") && !text.equals("/root")) {
      redacted.put(text, by);
    }
  }

  /**
   * Adds a file.
   *
   * @param name its name in the bundle
   * @param text its content; names of users and of the host are removed from it
   * @return this
   */
  public Bundle add(String name, String text) {
    String clean = text;
    for (Map.Entry<String, String> each : redacted.entrySet()) {
      // Matches whole words only: a name inside a longer word stays.
      Pattern whole =
          Pattern.compile("(?<![A-Za-z0-9])" + Pattern.quote(each.getKey()) + "(?![A-Za-z0-9])");
      clean = whole.matcher(clean).replaceAll(each.getValue());
    }
    files.put(name, clean);
    return this;
  }

  /**
   * Adds the environment variables that are settings, and no others.
   *
   * @return this
   */
  public Bundle addEnvironment() {
    String lines =
        new TreeMap<>(environment)
            .entrySet().stream()
                .filter(each -> TOLD.contains(each.getKey()))
                .map(each -> each.getKey() + "=" + each.getValue() + "\n")
                .collect(Collectors.joining());
    return add("environment.txt", lines);
  }

  /**
   * Adds the names and lengths of a directory's files, without their content.
   *
   * @param directory need not exist
   * @return this
   */
  public Bundle addListing(Path directory) {
    List<String> lines = new ArrayList<>();
    try (Stream<Path> all = Files.walk(directory, 4)) {
      all.limit(MOST_FILES)
          .sorted()
          .forEach(
              path -> {
                boolean regular = Files.isRegularFile(path, LinkOption.NOFOLLOW_LINKS);
                lines.add(
                    directory.relativize(path) + (regular ? " " + path.toFile().length() : ""));
              });
    } catch (IOException | UncheckedIOException e) {
      lines.add("cannot be listed: " + e.getMessage());
    }
    return add("run-directory.txt", String.join("\n", lines) + "\n");
  }

  /** {@return the names of the bundle's files} */
  public List<String> names() {
    return List.copyOf(files.keySet());
  }

  /**
   * Writes the bundle, readable by its owner only.
   *
   * @param file is created; must not exist
   * @throws IOException if it cannot be created or written
   */
  public void write(Path file) throws IOException {
    try (OutputStream out =
            Channels.newOutputStream(
                Files.newByteChannel(
                    file,
                    EnumSet.of(StandardOpenOption.CREATE_NEW, StandardOpenOption.WRITE),
                    PosixFilePermissions.asFileAttribute(
                        PosixFilePermissions.fromString("rw-------"))));
        ZipOutputStream zip = new ZipOutputStream(out)) {
      for (Map.Entry<String, String> each : files.entrySet()) {
        zip.putNextEntry(new ZipEntry(each.getKey()));
        zip.write(each.getValue().getBytes(UTF_8));
        zip.closeEntry();
      }
    }
  }
}
