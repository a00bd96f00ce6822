package dev.vgpu.k8s.node;

import static java.nio.charset.StandardCharsets.UTF_8;
import static org.assertj.core.api.Assertions.assertThat;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import dev.vgpu.k8s.node.holding.Step;
import dev.vgpu.k8s.proto.dra.Claim;
import dev.vgpu.k8s.proto.dra.Device;
import io.fabric8.kubernetes.api.model.resource.v1.ResourceSlice;
import java.io.IOException;
import java.nio.file.Files;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;

/** Claims for parts of GPUs in MIG mode, over two emulated GPUs of 16 GiB and real sockets. */
class MigClaimsIT {
  private TestNode node;
  private RoleProcess role;

  @BeforeEach
  void open() throws Exception {
    node = TestNode.withOtherGpus();
    role =
        new RoleProcess(
            node,
            Map.of(
                "VGPU_EMULATOR",
                "devices=2,memory=16GiB,mig=on,context=64MiB",
                "VGPU_EMULATOR_DIR",
                node.directory.resolve("gpus").toString()));
    role.start();
    node.kubelet.register();
    TestNode.await("slices", () -> slices().size() == 3);
  }

  @AfterEach
  void close() throws Exception {
    role.close();
    node.close();
  }

  private List<ResourceSlice> slices() {
    return node.api.resources(ResourceSlice.class).list().getItems();
  }

  /** The name of a part of the first or the second GPU. */
  private String device(int gpu, String part) {
    List<String> names =
        slices().stream()
            .flatMap(slice -> slice.getSpec().getDevices().stream())
            .map(one -> one.getName())
            .filter(name -> name.endsWith("-mig-" + part))
            .sorted()
            .toList();
    assertThat(names).hasSize(2);
    return names.get(gpu);
  }

  private Claim claim(String name, int gpu, String part) {
    return node.create(ClaimJson.part(name, device(gpu, part)));
  }

  private String cdi(Claim claim) throws IOException {
    List<Device> devices = node.kubelet.prepare(claim);
    assertThat(devices).hasSize(1);
    assertThat(devices.get(0).getShareId()).isEmpty();
    return devices.get(0).getCdiDeviceIds(0);
  }

  private void holdsNothing() throws IOException {
    assertThat(node.files("cdi")).isEmpty();
    assertThat(node.files("plugins/held")).isEmpty();
  }

  @Test
  void aClaimGetsItsPartWithAllOfItsMemory() throws Exception {
    assertThat(slices())
        .filteredOn(slice -> slice.getMetadata().getName().equals("node-1-vgpu.dev"))
        .hasSize(1)
        .allMatch(slice -> slice.getSpec().getDevices().isEmpty());
    Claim claim = claim("half", 0, "3g-8gb-4");
    String id = cdi(claim);
    assertThat(node.kubelet.variable(id, "CUDA_VISIBLE_DEVICES")).startsWith("MIG-");
    Process program = node.program(id, "hoard", "--chunk=256MiB", "--limit=256MiB", "--json");
    JsonNode figures = new ObjectMapper().readTree(program.getInputStream().readAllBytes());
    assertThat(program.waitFor()).isZero();
    assertThat(figures.path("total_before").asLong()).isEqualTo(8L << 30);
    assertThat(cdi(claim)).isEqualTo(id);
    node.kubelet.unprepare(claim);
    node.kubelet.unprepare(claim);
    holdsNothing();
  }

  @Test
  void partsThatDoNotOverlapAreHeldBesideEachOther() throws Exception {
    Claim right = claim("right", 0, "3g-8gb-4");
    Claim left = claim("left", 0, "3g-8gb-0");
    Claim four = claim("four", 0, "4g-8gb-0");
    Claim other = claim("other", 1, "7g-16gb-0");
    assertThat(cdi(right)).isNotEmpty();
    assertThat(node.kubelet.askToPrepare(claim("small", 0, "1g-2gb-6")).getError())
        .contains("team/small", "no room for part 1g.2gb:6 now");
    assertThat(cdi(left)).isNotEmpty();
    assertThat(node.kubelet.askToPrepare(four).getError()).contains("team/four", "part=3g.8gb:0");
    assertThat(cdi(other)).isNotEmpty();
    node.kubelet.unprepare(left);
    assertThat(cdi(four)).isNotEmpty();
    for (Claim each : List.of(right, four, other)) {
      node.kubelet.unprepare(each);
    }
    holdsNothing();
  }

  @Test
  void aPlaceThatSomebodyElseHasTakenIsNamed() throws Exception {
    Process hand = role.java(MigHand.class, "3g", "4").redirectErrorStream(true).start();
    String said = new String(hand.getInputStream().readAllBytes(), UTF_8);
    assertThat(hand.waitFor()).as(said).isZero();
    // Which of the two GPUs is the first one is not known here.
    String errors =
        node.kubelet.askToPrepare(claim("one", 0, "3g-8gb-4")).getError()
            + node.kubelet.askToPrepare(claim("two", 1, "3g-8gb-4")).getError();
    assertThat(errors)
        .contains("no room for part 3g.8gb:4 now, only for 3g.8gb:0")
        .containsOnlyOnce("no room for part");
  }

  @Test
  void parametersOfSharesAndSeveralPartsAreRefused() {
    String part = device(0, "3g-8gb-4");
    Claim fair =
        node.create(
            ClaimJson.allocated(
                "fair",
                part,
                "30",
                "1Gi",
                "{\"apiVersion\":\"vgpu.dev/v1alpha1\",\"kind\":\"ShareParameters\","
                    + "\"class\":\"online\"}"));
    assertThat(node.kubelet.askToPrepare(fair).getError()).contains("are for shared GPUs");
    Claim two =
        node.create(
            ClaimJson.allocated(
                "two", List.of(part, device(0, "3g-8gb-0")), 30, List.of("1Gi", "1Gi")));
    assertThat(node.kubelet.askToPrepare(two).getError()).contains("one part", "count=2");
  }

  /** After each death, the next process has the same part for the same claim, once. */
  @Test
  void deathsLeakNoPartAndGiveNoneTwice() throws Exception {
    Claim claim = claim("half", 0, "3g-8gb-4");
    role.close();
    for (Step step : List.of(Step.INTENT_KEPT, Step.ACQUIRED, Step.TAKEN_KEPT)) {
      role.start(step.name(), 1);
      node.kubelet.register();
      role.breaksOff(() -> node.kubelet.askToPrepare(claim));
    }
    role.start();
    node.kubelet.register();
    String id = cdi(claim);
    assertThat(held().path("part").asText()).isEqualTo("3g.8gb:4");
    String before = held().path("lease").asText();
    role.kill();
    role.start();
    TestNode.await("acquired anew", () -> !held().path("lease").asText().equals(before));
    node.kubelet.register();
    assertThat(cdi(claim)).isEqualTo(id);
    Claim overlaps = claim("whole", 0, "7g-16gb-0");
    assertThat(node.kubelet.askToPrepare(overlaps).getError()).contains("part=3g.8gb:4");
    node.kubelet.unprepare(claim);
    assertThat(cdi(overlaps)).isNotEmpty();
    node.kubelet.unprepare(overlaps);
    holdsNothing();
  }

  /** {@return the only virtual GPU that is recorded} */
  private JsonNode held() {
    try {
      return new ObjectMapper()
          .readTree(Files.readString(node.files("plugins/held").get(0)))
          .at("/parts/0");
    } catch (IOException e) {
      throw new AssertionError(e);
    }
  }
}
