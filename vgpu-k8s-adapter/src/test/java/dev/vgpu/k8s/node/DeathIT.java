package dev.vgpu.k8s.node;

import static org.assertj.core.api.Assertions.assertThat;

import dev.vgpu.k8s.node.holding.Step;
import dev.vgpu.k8s.proto.dra.Claim;
import dev.vgpu.k8s.proto.dra.Device;
import dev.vgpu.watch.GpuLease;
import io.fabric8.kubernetes.api.model.resource.v1.ResourceClaim;
import java.io.IOException;
import java.util.ArrayList;
import java.util.EnumSet;
import java.util.List;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;

/**
 * Kills the role's process with SIGKILL at each step of taking and giving back. After each death,
 * another process completes the request; nothing is leaked, and nothing is given twice.
 */
class DeathIT {
  private TestNode node;
  private Claim claim;
  private RoleProcess role;

  @BeforeEach
  void open() throws IOException {
    node = new TestNode();
    role = new RoleProcess(node);
    // So much of the GPU that a second such claim would not fit.
    claim = node.create(ClaimJson.allocated("gpu-of-a", node.device(0), 60, "3Gi"));
  }

  @AfterEach
  void close() throws Exception {
    role.close();
    node.close();
  }

  static List<Step> steps(Step from, Step to) {
    List<Step> steps = new ArrayList<>(List.of(Step.FILE_WRITTEN));
    steps.addAll(EnumSet.range(from, to));
    return steps;
  }

  private void holdsOne() throws InterruptedException {
    TestNode.await("one lease", () -> node.pool.leases().size() == 1);
    GpuLease lease = node.pool.leases().get(0);
    assertThat(lease.pid()).isEqualTo(role.pid());
    assertThat(lease.request().memory().bytes()).isEqualTo(3L << 30);
  }

  private void holdsNothing() throws InterruptedException {
    TestNode.await("no lease", () -> node.pool.leases().isEmpty());
    TestNode.await("no files", () -> node.isEmpty("cdi") && node.isEmpty("plugins/held"));
  }

  @Test
  void deathWhileItPreparesLeaksNothingAndTheNextTryIsServed() throws Exception {
    for (Step step : steps(Step.INTENT_KEPT, Step.TAKEN_KEPT)) {
      role.start(step.name(), 1);
      node.kubelet.register();
      role.breaksOff(() -> node.kubelet.askToPrepare(claim));
    }
    role.start();
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
      role.start(step.name(), step == Step.FILE_WRITTEN ? 4 : 1);
      if (!role.isAlive()) {
        role.awaitDeath(); // it continues what the process before had begun to give back
        continue;
      }
      node.kubelet.register();
      List<Device> ignored = node.kubelet.prepare(claim);
      role.breaksOff(() -> node.kubelet.unprepare(claim));
    }
    role.start();
    node.kubelet.register();
    node.kubelet.unprepare(claim);
    holdsNothing();
  }

  @Test
  void whatWasPreparedOutlastsADeathUnderTheSameName() throws Exception {
    role.start();
    node.kubelet.register();
    String id = node.kubelet.prepare(claim).get(0).getCdiDeviceIds(0);
    String before = node.kubelet.variable(id, "VGPU_LEASE");
    role.kill();

    role.start();
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
    role.start();
    node.kubelet.register();
    List<Device> ignored = node.kubelet.prepare(claim);
    role.kill();
    node.api.resources(ResourceClaim.class).inNamespace("team").withName("gpu-of-a").delete();
    role.start();
    holdsNothing();
  }

  @Test
  void deathWhileItGivesBackWhatNoClaimHasLeaksNothing() throws Exception {
    for (Step step : steps(Step.RETURN_KEPT, Step.FORGOTTEN)) {
      role.start();
      node.kubelet.register();
      List<Device> ignored = node.kubelet.prepare(claim);
      role.kill();
      node.api.resources(ResourceClaim.class).inNamespace("team").withName("gpu-of-a").delete();
      // To acquire it again, it writes two files: the CDI file, and the record.
      role.start(step.name(), step == Step.FILE_WRITTEN ? 3 : 1);
      role.awaitDeath();
      role.start();
      holdsNothing();
      role.kill();
      claim = node.create(ClaimJson.allocated("gpu-of-a", node.device(0), 60, "3Gi"));
    }
  }
}
