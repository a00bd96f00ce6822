package dev.vgpu.k8s.node;

import static org.assertj.core.api.Assertions.assertThat;

import dev.vgpu.GpuLease;
import dev.vgpu.k8s.node.holding.Step;
import dev.vgpu.k8s.proto.dra.Claim;
import dev.vgpu.k8s.proto.dra.Device;
import io.fabric8.kubernetes.api.model.resource.v1.ResourceClaim;
import io.grpc.StatusRuntimeException;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.EnumSet;
import java.util.List;
import java.util.concurrent.TimeUnit;
import java.util.stream.Stream;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;

/**
 * Kills the role's process with SIGKILL at each step of taking and giving back. After each death,
 * another process completes the request; nothing is leaked, and nothing is given twice.
 */
class DeathIT {
  private static final long TIMEOUT_SECONDS = 60;

  private TestNode node;
  private Claim claim;
  private int started;
  private Process role;

  @BeforeEach
  void open() throws IOException {
    node = new TestNode();
    // So much of the GPU that a second such claim would not fit.
    claim = node.create(ClaimJson.allocated("gpu-of-a", node.device(0), 60, "3Gi"));
  }

  @AfterEach
  void close() throws Exception {
    if (role != null) {
      role.destroyForcibly().waitFor();
    }
    node.close();
  }

  private void start(String step, int times) throws IOException, InterruptedException {
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

  private static boolean isReady(Path out) {
    try {
      return Files.readString(out).contains("ready");
    } catch (IOException e) {
      return false;
    }
  }

  private void awaitDeath() throws InterruptedException {
    assertThat(role.waitFor(TIMEOUT_SECONDS, TimeUnit.SECONDS)).isTrue();
    assertThat(role.exitValue()).as("killed by SIGKILL").isEqualTo(128 + 9);
  }

  /** The kubelet's behaviour when its call breaks off: it only calls again later. */
  private void breaksOff(Runnable call) throws InterruptedException {
    try {
      call.run();
      throw new AssertionError("the role was to die, and answered");
    } catch (StatusRuntimeException e) {
      awaitDeath();
    }
  }

  private static List<Step> steps(Step from, Step to) {
    List<Step> steps = new ArrayList<>(List.of(Step.FILE_WRITTEN));
    steps.addAll(EnumSet.range(from, to));
    return steps;
  }

  private List<Path> files(String directory) throws IOException {
    Path path = node.directory.resolve(directory);
    if (!Files.exists(path)) {
      return List.of();
    }
    try (Stream<Path> files = Files.list(path)) {
      return files.toList();
    }
  }

  private void holdsOne() throws InterruptedException {
    TestNode.await("one lease", () -> node.pool.leases().size() == 1);
    GpuLease lease = node.pool.leases().get(0);
    assertThat(lease.pid()).isEqualTo(role.pid());
    assertThat(lease.request().memory().bytes()).isEqualTo(3L << 30);
  }

  private void holdsNothing() throws InterruptedException, IOException {
    TestNode.await("no lease", () -> node.pool.leases().isEmpty());
    assertThat(files("cdi")).isEmpty();
    assertThat(files("plugins/held")).isEmpty();
  }

  @Test
  void deathWhileItPreparesLeaksNothingAndTheNextTryIsServed() throws Exception {
    for (Step step : steps(Step.INTENT_KEPT, Step.TAKEN_KEPT)) {
      start(step.name(), 1);
      node.kubelet.register();
      breaksOff(() -> node.kubelet.askToPrepare(claim));
    }
    start("none", 0);
    node.kubelet.register();
    List<Device> devices = node.kubelet.prepare(claim);
    holdsOne();
    assertThat(node.kubelet.variable(devices.get(0).getCdiDeviceIds(0), "VGPU_LEASE"))
        .isEqualTo(node.pool.leases().get(0).id());
    node.kubelet.unprepare(claim);
    holdsNothing();
  }

  @Test
  void deathWhileItUnpreparesLeaksNothing() throws Exception {
    for (Step step : steps(Step.RETURN_KEPT, Step.FORGOTTEN)) {
      // Preparing has written three files by then: the intention, the CDI file, the result.
      start(step.name(), step == Step.FILE_WRITTEN ? 4 : 1);
      if (!role.isAlive()) {
        awaitDeath(); // it continues what the process before had begun to give back
        continue;
      }
      node.kubelet.register();
      List<Device> ignored = node.kubelet.prepare(claim);
      breaksOff(() -> node.kubelet.unprepare(claim));
    }
    start("none", 0);
    node.kubelet.register();
    node.kubelet.unprepare(claim);
    holdsNothing();
  }

  @Test
  void whatWasPreparedOutlastsADeathUnderTheSameName() throws Exception {
    start("none", 0);
    node.kubelet.register();
    String id = node.kubelet.prepare(claim).get(0).getCdiDeviceIds(0);
    String before = node.kubelet.variable(id, "VGPU_LEASE");
    role.destroyForcibly().waitFor();

    start("none", 0);
    TestNode.await(
        "acquired anew, and the CDI file says so",
        () -> !node.kubelet.variable(id, "VGPU_LEASE").equals(before));
    holdsOne();
    assertThat(node.kubelet.variable(id, "VGPU_LEASE")).isEqualTo(node.pool.leases().get(0).id());
    node.kubelet.register();
    assertThat(node.kubelet.prepare(claim).get(0).getCdiDeviceIds(0)).isEqualTo(id);
    holdsOne();
  }

  @Test
  void whatNoClaimHasAnyMoreIsGivenBackAfterADeath() throws Exception {
    start("none", 0);
    node.kubelet.register();
    List<Device> ignored = node.kubelet.prepare(claim);
    role.destroyForcibly().waitFor();
    node.api.resources(ResourceClaim.class).inNamespace("team").withName("gpu-of-a").delete();
    start("none", 0);
    holdsNothing();
  }
}
