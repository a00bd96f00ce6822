package dev.vgpu.k8s.node;

import static org.assertj.core.api.Assertions.assertThat;

import io.grpc.StatusRuntimeException;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.concurrent.TimeUnit;

/** The {@code node} role as a process, which can be killed and started again. */
final class RoleProcess {
  private static final long TIMEOUT_SECONDS = 60;

  private final TestNode node;
  private int started;
  private Process role;

  RoleProcess(TestNode node) {
    this.node = node;
  }

  /** Starts the role, which kills itself when a step is done for this many times. */
  void start(String step, int times) throws IOException, InterruptedException {
    started++;
    Path out = node.directory.resolve(started + ".out");
    List<String> command =
        List.of(
            Path.of(System.getProperty("java.home"), "bin", "java").toString(),
            "-XX:TieredStopAtLevel=1",
            "-XX:+UseSerialGC",
            "-Xshare:auto",
            "-cp",
            System.getProperty("java.class.path"),
            CrashingNode.class.getName(),
            node.mock.url(),
            node.directory.toString(),
            node.runDirectory().toString(),
            step,
            Integer.toString(times));
    role =
        new ProcessBuilder(command)
            .redirectOutput(out.toFile())
            .redirectError(node.directory.resolve(started + ".err").toFile())
            .start();
    TestNode.await("the role is ready or dead", () -> isReady(out) || !role.isAlive());
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
