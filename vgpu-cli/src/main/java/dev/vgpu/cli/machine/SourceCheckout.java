package dev.vgpu.cli.machine;

import static java.nio.charset.StandardCharsets.UTF_8;
import static java.util.Objects.requireNonNull;

import dev.vgpu.cli.console.UserException;
import java.io.File;
import java.io.IOException;
import java.nio.file.DirectoryStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Map;
import java.util.Optional;
import java.util.concurrent.TimeUnit;

/**
 * The source directory of vgpu that the {@code ./vgpu} script runs from. Immutable.
 *
 * @param root the directory
 */
public record SourceCheckout(Path root) {
  private static final long GIT_TIMEOUT_SECONDS = 5;

  /** Checks that the directory is given. */
  public SourceCheckout {
    requireNonNull(root, "root");
  }

  /**
   * {@return the checkout that the script names in {@code VGPU_HOME}; empty if there is none}
   *
   * @param environment the environment variables
   */
  public static Optional<SourceCheckout> find(Map<String, String> environment) {
    return Optional.ofNullable(environment.get("VGPU_HOME"))
        .filter(home -> !home.isBlank())
        .map(home -> new SourceCheckout(Path.of(home).toAbsolutePath().normalize()));
  }

  /**
   * {@return the checkout, for a command that needs one}
   *
   * @param environment the environment variables
   * @param command the command's name, for the message
   * @throws UserException if there is none
   */
  public static SourceCheckout require(Map<String, String> environment, String command)
      throws UserException {
    return find(environment)
        .orElseThrow(
            () ->
                new UserException(
                    "vgpu "
                        + command
                        + " needs a source checkout, and VGPU_HOME is not set; run it as ./vgpu "
                        + command
                        + " in a clone of the repository"));
  }

  /**
   * {@return the class path of a module that was built in this checkout}
   *
   * @param module its directory, for example {@code samples/inference-server}
   * @param artifact the name of its jar, without the version
   * @throws UserException if it has not been built
   */
  public String classPath(String module, String artifact) throws UserException {
    Path target = root.resolve(module).resolve("target");
    try {
      String dependencies = Files.readString(target.resolve("classpath.txt"), UTF_8).strip();
      String jar = jar(target, artifact).toString();
      return dependencies.contains(jar) ? dependencies : jar + File.pathSeparator + dependencies;
    } catch (IOException e) {
      throw new UserException(
          module
              + " is not built in "
              + root
              + " ("
              + e.getMessage()
              + "); build it with: mvn -q -f "
              + root
              + " package -Dvgpu.quick",
          e);
    }
  }

  /** {@return the short commit, with {@code -dirty} if files were changed; empty if unknown} */
  public Optional<String> commit() {
    if (!Files.exists(root.resolve(".git"))) {
      return Optional.empty();
    }
    try {
      Process git =
          new ProcessBuilder("git", "-C", root.toString(), "describe", "--always", "--dirty")
              .redirectError(ProcessBuilder.Redirect.DISCARD)
              .start();
      git.getOutputStream().close();
      String answer = new String(git.getInputStream().readAllBytes(), UTF_8).strip();
      boolean ended = git.waitFor(GIT_TIMEOUT_SECONDS, TimeUnit.SECONDS);
      return ended && git.exitValue() == 0 && !answer.isEmpty()
          ? Optional.of(answer)
          : Optional.empty();
    } catch (IOException e) {
      return Optional.empty();
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
      return Optional.empty();
    }
  }

  private static Path jar(Path target, String artifact) throws IOException {
    try (DirectoryStream<Path> jars = Files.newDirectoryStream(target, artifact + "-*.jar")) {
      for (Path jar : jars) {
        String name = jar.getFileName().toString();
        if (!name.endsWith("-sources.jar") && !name.endsWith("-javadoc.jar")) {
          return jar;
        }
      }
    }
    throw new IOException("no " + artifact + "-*.jar in " + target);
  }
}
