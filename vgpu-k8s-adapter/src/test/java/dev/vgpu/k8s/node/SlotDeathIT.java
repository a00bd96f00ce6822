package dev.vgpu.k8s.node;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import dev.vgpu.k8s.node.holding.Step;
import dev.vgpu.watch.GpuLease;
import io.fabric8.kubernetes.api.model.Pod;
import java.io.BufferedReader;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.util.List;
import java.util.Locale;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;

/**
 * Kills the device plugin's process with SIGKILL, and restarts the kubelet, before, while and after
 * a container starts. No container loses its virtual GPU, none is given twice, nothing is left.
 */
class SlotDeathIT {
  private static final long QUOTA = 1L << 30;
  private static final long PIECE = 64L << 20;

  private TestNode node;
  private StrictDevices devices;
  private RoleProcess role;
  private Process program;

  @BeforeEach
  void open() throws IOException {
    node = new TestNode();
    devices = node.devices();
    role = new RoleProcess(node);
    // So much of the GPU that a second such container would not fit.
    Pod ignored = node.pod("a", node.reservation(60, "1Gi"));
  }

  @AfterEach
  void close() throws Exception {
    if (program != null) {
      program.destroyForcibly().waitFor();
    }
    role.close();
    devices.close();
    node.close();
  }

  /** Starts the role, and connects to it as soon as it has registered. */
  private void start(String step, int times) throws IOException, InterruptedException {
    int before = devices.registrations.get();
    role.start(step, times);
    TestNode.await(
        "registered, or dead", () -> devices.registrations.get() > before || !role.isAlive());
    if (role.isAlive()) {
      assertThat(devices.connect()).hasSize(8);
    }
  }

  private void start() throws IOException, InterruptedException {
    start("none", 0);
  }

  /** A program in the container, which has taken all memory that it can get and holds it. */
  private Process holder(String cdi) throws IOException {
    Process process =
        node.program(cdi, "hoard", "--chunk", Long.toString(PIECE), "--json", "--hold", "1000000");
    JsonNode said = said(process);
    assertThat(said.path("refusal").asText()).isEqualTo("CUDA_ERROR_OUT_OF_MEMORY");
    assertThat(said.path("bytes").asLong()).isBetween(QUOTA - 3 * PIECE, QUOTA);
    return process;
  }

  @SuppressWarnings("resource") // Closed with the process.
  private static JsonNode said(Process process) throws IOException {
    BufferedReader out = process.inputReader(StandardCharsets.UTF_8);
    String line = out.readLine();
    return new ObjectMapper().readTree(line == null ? "{}" : line);
  }

  private GpuLease onlyLease() {
    List<GpuLease> leases = node.pool.leases();
    assertThat(leases).hasSize(1);
    return leases.get(0);
  }

  private void holdsOneAs(String cdi) throws InterruptedException {
    TestNode.await(
        "one lease, of this role",
        () -> {
          List<GpuLease> leases = node.pool.leases();
          return leases.size() == 1 && leases.get(0).pid() == role.pid();
        });
    assertThat(onlyLease().request().memory().bytes()).isEqualTo(QUOTA);
    TestNode.await(
        "the CDI file names it",
        () -> node.kubelet.variable(cdi, "VGPU_LEASE").equals(onlyLease().id()));
  }

  private void ends(String pod, String slot) {
    devices.ended(pod, slot);
    node.delete(pod);
  }

  private void holdsNothing() throws InterruptedException, IOException {
    TestNode.await("no lease", () -> node.pool.leases().isEmpty());
    TestNode.await("no files", () -> isEmpty("cdi") && isEmpty("plugins/held"));
  }

  private boolean isEmpty(String directory) {
    try {
      return node.files(directory).isEmpty();
    } catch (IOException e) {
      throw new AssertionError(e);
    }
  }

  @Test
  void deathBetweenAllocateAndTheStartOfTheContainer() throws Exception {
    start();
    String cdi = devices.admit("a", "main", "slot-0");
    role.kill();
    assertThat(node.pool.leases()).isEmpty();
    start();
    devices.preStart("slot-0");
    holdsOneAs(cdi);
    program = holder(cdi);
    program.destroyForcibly().waitFor();
    ends("a", "slot-0");
    holdsNothing();
  }

  @Test
  void deathAtEachStepOfPreStartGivesNothingTwice() throws Exception {
    String cdi = "";
    for (Step step : DeathIT.steps(Step.INTENT_KEPT, Step.TAKEN_KEPT)) {
      start(step.name(), 1);
      if (cdi.isEmpty()) {
        cdi = devices.admit("a", "main", "slot-0");
      }
      role.breaksOff(() -> devices.preStart("slot-0"));
    }
    start();
    devices.preStart("slot-0");
    holdsOneAs(cdi);
    ends("a", "slot-0");
    holdsNothing();
  }

  @Test
  void deathAtEachStepOfGivingBackLeavesNothing() throws Exception {
    for (Step step : DeathIT.steps(Step.RETURN_KEPT, Step.FORGOTTEN)) {
      // Taking has written three files by then: the intention, the CDI file, the result.
      start(step.name(), step == Step.FILE_WRITTEN ? 4 : 1);
      if (!role.isAlive() || !node.files("plugins/held").isEmpty()) {
        role.awaitDeath(); // it continues what the process before had begun to give back
        continue;
      }
      String pod = "of-" + step.name().toLowerCase(Locale.ROOT).replace('_', '-');
      Pod ignored = node.pod(pod, node.reservation(60, "1Gi"));
      String unused = devices.admit(pod, "main", "slot-1");
      devices.preStart("slot-1");
      ends(pod, "slot-1");
      role.awaitDeath();
    }
    start();
    holdsNothing();
  }

  /** The role is not there when the container starts: nothing runs without limits. */
  @Test
  void aContainerThatStartsWhileTheRoleIsDeadIsRefusedUntilItIsBack() throws Exception {
    start();
    String cdi = devices.admit("a", "main", "slot-0");
    devices.preStart("slot-0");
    role.kill();
    TestNode.await("its lease has ended", () -> node.pool.leases().isEmpty());
    program = node.program(cdi, "hoard", "--chunk", Long.toString(PIECE), "--json");
    assertThat(said(program).path("bytes").asLong()).isZero();
    assertThat(program.waitFor()).isEqualTo(1);
    start();
    devices.preStart("slot-0"); // the container restarts
    holdsOneAs(cdi);
    program = holder(cdi);
  }

  @Test
  void deathWhileAContainerRunsLeavesItsVirtualGpuToIt() throws Exception {
    start();
    String cdi = devices.admit("a", "main", "slot-0");
    devices.preStart("slot-0");
    program = holder(cdi);
    String lease = onlyLease().id();
    role.kill();
    start();
    assertThat(program.isAlive()).isTrue();
    assertThat(onlyLease().id()).isEqualTo(lease);
    Pod ignored = node.pod("b", node.reservation(60, "1Gi"));
    String unused = devices.admit("b", "main", "slot-1");
    assertThatThrownBy(() -> devices.preStart("slot-1")).hasMessageContaining("free");
    assertThat(onlyLease().id()).isEqualTo(lease);
    ends("b", "slot-1");

    program.destroyForcibly().waitFor();
    holdsOneAs(cdi);
    assertThat(onlyLease().id()).isNotEqualTo(lease);
    devices.preStart("slot-0"); // the container restarts
    program = holder(cdi);
    program.destroyForcibly().waitFor();
    ends("a", "slot-0");
    holdsNothing();
  }

  /** A kubelet lists no pods from its start until the API server has told it its pods. */
  @Test
  void aRestartedKubeletThatDoesNotKnowItsPodsYetTakesNothingFromThem() throws Exception {
    start();
    String cdi = devices.admit("a", "main", "slot-0");
    devices.preStart("slot-0");
    program = holder(cdi);
    String lease = onlyLease().id();
    int registrations = devices.registrations.get();
    devices.restart();
    TestNode.await("registered again", () -> devices.registrations.get() > registrations);
    int lists = devices.lists.get();
    TestNode.await("looked several times", () -> devices.lists.get() > lists + 3);
    assertThat(onlyLease().id()).isEqualTo(lease);
    assertThat(node.kubelet.variable(cdi, "VGPU_LEASE")).isEqualTo(lease);
    assertThat(node.files("plugins/held")).hasSize(1);

    devices.learnsItsPods();
    assertThat(devices.connect()).hasSize(8);
    program.destroyForcibly().waitFor();
    devices.preStart("slot-0"); // the container restarts
    assertThat(onlyLease().id()).isEqualTo(lease);
    program = holder(cdi);
    program.destroyForcibly().waitFor();
    ends("a", "slot-0");
    holdsNothing();
  }
}
