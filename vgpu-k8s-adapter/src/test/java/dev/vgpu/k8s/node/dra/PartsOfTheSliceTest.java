package dev.vgpu.k8s.node.dra;

import static org.assertj.core.api.Assertions.assertThat;
import static org.mockito.Mockito.when;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import dev.vgpu.GpuDriverException;
import dev.vgpu.k8s.node.health.GpuConditions;
import dev.vgpu.k8s.node.health.MockedGpus;
import dev.vgpu.request.GpuId;
import dev.vgpu.request.GpuPart;
import dev.vgpu.request.MemorySize;
import dev.vgpu.watch.GpuHealth;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.stream.IntStream;
import org.junit.jupiter.api.Test;

/** The parts of GPUs in MIG mode as devices, and their counters. */
class PartsOfTheSliceTest {
  private static final String LONG = "GPU-5c1f2e3d-0000-1111-2222-3333444455";
  private static final List<GpuPart> PARTS = MockedGpus.partsOfA100();

  private static MockedGpus divided(int count) {
    MockedGpus gpus =
        new MockedGpus(
            IntStream.range(10, 10 + count).mapToObj(i -> LONG + i).toArray(String[]::new));
    IntStream.range(10, 10 + count).forEach(i -> gpus.isDivided(LONG + i, PARTS));
    return gpus;
  }

  private static List<ObjectNode> slices(MockedGpus gpus) {
    GpuConditions conditions = new GpuConditions(gpus.pool);
    return new NodeDevices(gpus.pool, conditions, "n").slices(false, true, 1);
  }

  private static List<JsonNode> all(List<ObjectNode> slices, String field) {
    List<JsonNode> all = new ArrayList<>();
    slices.forEach(slice -> slice.path(field).forEach(all::add));
    return all;
  }

  private static Map<String, Integer> amounts(JsonNode counters) {
    Map<String, Integer> amounts = new HashMap<>();
    counters
        .properties()
        .forEach(one -> amounts.put(one.getKey(), one.getValue().path("value").asInt()));
    return amounts;
  }

  /** The limits are those of Kubernetes 1.36. */
  @Test
  void slicesAreWhatTheApiServerAccepts() {
    List<ObjectNode> slices = slices(divided(16));
    assertThat(slices).hasSize(1 + 2 + 7);
    for (ObjectNode slice : slices) {
      assertThat(slice.has("devices")).isNotEqualTo(slice.has("sharedCounters"));
      assertThat(slice.path("devices")).hasSizeLessThanOrEqualTo(64);
      assertThat(slice.path("sharedCounters")).hasSizeLessThanOrEqualTo(8);
      assertThat(slice.at("/pool/resourceSliceCount").asInt()).isEqualTo(slices.size());
    }
    Map<String, Map<String, Integer>> sets = new HashMap<>();
    for (JsonNode set : all(slices, "sharedCounters")) {
      assertThat(amounts(set.path("counters"))).hasSizeLessThanOrEqualTo(32);
      assertThat(sets.put(set.path("name").asText(), amounts(set.path("counters")))).isNull();
    }
    assertThat(sets).hasSize(16);
    Set<String> names = new HashSet<>();
    List<JsonNode> devices = all(slices, "devices");
    assertThat(devices).hasSize(16 * PARTS.size());
    for (JsonNode device : devices) {
      String name = device.path("name").asText();
      assertThat(name).matches("[a-z0-9]([-a-z0-9]*[a-z0-9])?").hasSizeLessThan(64);
      assertThat(names.add(name)).as(name).isTrue();
      assertThat(device.path("consumesCounters")).hasSize(1);
      JsonNode taken = device.at("/consumesCounters/0");
      Map<String, Integer> set = sets.get(taken.path("counterSet").asText());
      amounts(taken.path("counters"))
          .forEach((counter, amount) -> assertThat(amount).isBetween(1, set.get(counter)));
    }
  }

  /**
   * Two parts fit exactly if their memory slices are others', and the GPU has enough of the rest.
   */
  @Test
  void countersAllowWhatTheHardwareAllows() {
    List<ObjectNode> slices = slices(divided(1));
    Map<String, Integer> free = amounts(all(slices, "sharedCounters").get(0).path("counters"));
    assertThat(free)
        .hasSize(10)
        .containsEntry("memory-slice-7", 1)
        .containsEntry("compute-slices", 7)
        .containsEntry("media-engines", 1);
    List<GpuPart> parts = PartDevices.inOrder(PARTS);
    List<JsonNode> devices = all(slices, "devices");
    for (int i = 0; i < parts.size(); i++) {
      for (int j = 0; j < parts.size(); j++) {
        Map<String, Integer> both = amounts(devices.get(i).at("/consumesCounters/0/counters"));
        amounts(devices.get(j).at("/consumesCounters/0/counters"))
            .forEach((name, amount) -> both.merge(name, amount, Integer::sum));
        boolean fits =
            both.entrySet().stream().allMatch(one -> one.getValue() <= free.get(one.getKey()));
        assertThat(fits)
            .as("%s and %s", parts.get(i), parts.get(j))
            .isEqualTo(isLegal(parts.get(i), parts.get(j)));
      }
    }
  }

  private static boolean isLegal(GpuPart one, GpuPart other) {
    boolean isApart =
        one.start() + one.slices() <= other.start()
            || other.start() + other.slices() <= one.start();
    boolean isMedia = one.profile().endsWith("+me") && other.profile().endsWith("+me");
    return isApart && !isMedia && one.computeSlices() + other.computeSlices() <= 7;
  }

  @Test
  void aPartHasTheAttributesOfItsGpuAndItsOwn() {
    MockedGpus gpus = new MockedGpus("GPU-0", "GPU-1");
    gpus.isDivided("GPU-0", PARTS);
    gpus.reads("GPU-0", Map.of("mig_mode", "on", "numa_node", "1", "driver_version", "570.1"));
    List<ObjectNode> slices = slices(gpus);
    assertThat(slices.get(0).path("devices")).hasSize(1);
    assertThat(slices.get(0).at("/devices/0/name").asText()).isEqualTo("gpu-1");
    assertThat(slices.get(0).at("/devices/0/attributes/type/string").asText()).isEqualTo("gpu");
    JsonNode part =
        all(slices, "devices").stream()
            .filter(one -> one.path("name").asText().equals("gpu-0-mig-3g-20gb-4"))
            .findFirst()
            .orElseThrow();
    assertThat(part.path("allowMultipleAllocations").asBoolean()).isFalse();
    assertThat(part.at("/attributes/type/string").asText()).isEqualTo("mig");
    assertThat(part.at("/attributes/profile/string").asText()).isEqualTo("3g.20gb");
    assertThat(part.at("/attributes/parentUUID/string").asText()).isEqualTo("GPU-0");
    assertThat(part.at("/attributes/uuid/string").asText()).isEqualTo("GPU-0");
    assertThat(part.at("/attributes/start/int").asInt()).isEqualTo(4);
    assertThat(part.at("/attributes/numaNode/int").asInt()).isEqualTo(1);
    assertThat(part.at("/attributes/driverVersion/version").asText()).isEqualTo("570.1.0");
    assertThat(part.at("/capacity/memory/value").asText()).isEqualTo("19456Mi");
    assertThat(part.at("/capacity/multiprocessors/value").asText()).isEqualTo("42");
    assertThat(part.path("capacity").has("share")).isFalse();
  }

  /** kube-scheduler takes the first device that will do. */
  @Test
  void theSmallestPartComesFirstAtThePlaceThatLeavesMost() {
    List<String> names =
        all(slices(divided(1)), "devices").stream()
            .map(one -> one.path("name").asText().replaceFirst(".*-mig-", ""))
            .toList();
    assertThat(names)
        .startsWith("1g-5gb-6", "1g-5gb-5")
        .endsWith("3g-20gb-0", "4g-20gb-0", "7g-40gb-0");
    assertThat(names.indexOf("3g-20gb-4")).isLessThan(names.indexOf("3g-20gb-0"));
  }

  /** Some GPUs have a profile with the media engines and one without. */
  @Test
  void namesOfProfilesThatDifferInASignDiffer() {
    MemorySize memory = MemorySize.ofGibibytes(24);
    assertThat(PartDevices.name("gpu-0", new GpuPart("1g.24gb+me.all", 2, 1, 1, memory, 46)))
        .isEqualTo("gpu-0-mig-1g-24gb-me-all-2");
    assertThat(PartDevices.name("gpu-0", new GpuPart("1g.24gb+me", 2, 1, 1, memory, 46)))
        .isEqualTo("gpu-0-mig-1g-24gb-me-2");
    assertThat(PartDevices.name("gpu-0", new GpuPart("1g.24gb-me", 2, 1, 1, memory, 46)))
        .isEqualTo("gpu-0-mig-1g-24gb-no-me-2");
  }

  @Test
  void aLostGpuKeepsItsPartsAndAllHaveItsTaint() {
    MockedGpus gpus = new MockedGpus("GPU-0", "GPU-1");
    gpus.isDivided("GPU-0", PARTS);
    gpus.isDivided("GPU-1", PARTS);
    GpuConditions conditions = new GpuConditions(gpus.pool);
    NodeDevices devices = new NodeDevices(gpus.pool, conditions, "n");
    assertThat(all(devices.slices(false, true, 1), "devices"))
        .hasSize(2 * PARTS.size())
        .noneMatch(one -> one.has("taints"));
    when(gpus.pool.parts(new GpuId("GPU-0"))).thenThrow(new GpuDriverException("lost", null));
    gpus.is("GPU-0", GpuHealth.LOST);
    List<JsonNode> now = all(devices.slices(false, true, 1), "devices");
    assertThat(now)
        .hasSize(2 * PARTS.size())
        .allMatch(
            one ->
                one.has("taints")
                    == one.at("/attributes/parentUUID/string").asText().equals("GPU-0"))
        .filteredOn(one -> one.has("taints"))
        .hasSize(PARTS.size())
        .allMatch(one -> one.at("/taints/0/value").asText().equals("lost"));
  }

  /** It is tried again. */
  @Test
  void aGpuWhosePartsCannotBeReadHasNone() {
    MockedGpus gpus = divided(1);
    when(gpus.pool.parts(new GpuId(LONG + "10")))
        .thenThrow(new GpuDriverException("busy", null))
        .thenReturn(PARTS);
    NodeDevices devices = new NodeDevices(gpus.pool, new GpuConditions(gpus.pool), "n");
    assertThat(devices.all()).isEmpty();
    assertThat(devices.all()).hasSize(PARTS.size());
  }
}
