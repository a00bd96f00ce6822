package dev.vgpu.k8s.node;

import static org.assertj.core.api.Assertions.assertThat;

import io.grpc.StatusRuntimeException;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.TimeUnit;

/** The {@code node} role as a process, which can be killed and started again. */
final class RoleProcess {
  private static final long TIMEOUT_SECONDS = 60;
  private static final RoleJvm JVM = new RoleJvm(CrashingNode.class);

  private final TestNode node;
  private final Map<String, String> environment;
  private int started;
  private Process role;

  RoleProcess(TestNode node) {
    this(node, Map.of());
  }

  /** One with these variables. */
  RoleProcess(TestNode node, Map<String, String> environment) {
    this.node = node;
    this.environment = environment;
  }

  /** Starts the role, which kills itself when a step is done for this many times. */
  void start(String step, int times) throws IOException, InterruptedException {
    started++;
    Path out = node.directory.resolve(started + ".out");
    ProcessBuilder builder =
        new ProcessBuilder(
            JVM.command(
                node.mock.url(),
                node.directory.toString(),
                node.runDirectory().toString(),
                step,
                Integer.toString(times)));
    builder.environment().putAll(environment);
    role =
        builder
            .redirectOutput(out.toFile())
            .redirectError(node.directory.resolve(started + ".err").toFile())
            .start();
    TestNode.await("the role is ready or dead", () -> isReady(out) || !role.isAlive());
  }

  /** A program with the role's variables. */
  ProcessBuilder java(Class<?> main, String... arguments) {
    List<String> command = new ArrayList<>();
    command.add(Path.of(System.getProperty("java.home"), "bin", "java").toString());
    command.addAll(List.of("-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-Xshare:auto"));
    command.addAll(List.of("-cp", System.getProperty("java.class.path"), main.getName()));
    command.addAll(List.of(arguments));
    ProcessBuilder builder = new ProcessBuilder(command);
    builder.environment().putAll(environment);
    return builder;
  }

  /** Starts the role, which does not kill itself. */
  void start() throws IOException, InterruptedException {
    start("none", 0);
  }

  private static boolean isReady(Path out) {
    try {
      return Files.readString(out).contains("ready");
    } catch (IOException e) {
      return false;
    }
  }

  boolean isAlive() {
    return role.isAlive();
  }

  long pid() {
    return role.pid();
  }

  /** Waits until the role has killed itself. */
  void awaitDeath() throws InterruptedException {
    assertThat(role.waitFor(TIMEOUT_SECONDS, TimeUnit.SECONDS)).isTrue();
    assertThat(role.exitValue()).as("killed by SIGKILL").isEqualTo(128 + 9);
  }

  /** The kubelet's behaviour when its call breaks off: it only calls again later. */
  void breaksOff(Runnable call) throws InterruptedException {
    try {
      call.run();
      throw new AssertionError("the role was to die, and answered");
    } catch (StatusRuntimeException e) {
      awaitDeath();
    }
  }

  /** Kills the role now, with SIGKILL. */
  void kill() throws InterruptedException {
    role.destroyForcibly().waitFor();
  }

  void close() throws InterruptedException {
    if (role != null) {
      kill();
    }
  }
}
