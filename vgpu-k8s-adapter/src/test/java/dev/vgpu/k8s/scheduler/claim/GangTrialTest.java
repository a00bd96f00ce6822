package dev.vgpu.k8s.scheduler.claim;

import static org.assertj.core.api.Assertions.assertThat;

import dev.vgpu.k8s.names.GangName;
import dev.vgpu.k8s.scheduler.Pods;
import io.fabric8.kubernetes.api.model.Pod;
import io.fabric8.kubernetes.api.model.resource.v1.DeviceClaim;
import io.fabric8.kubernetes.api.model.resource.v1.DeviceConstraint;
import io.fabric8.kubernetes.api.model.resource.v1.ResourceClaim;
import io.fabric8.kubernetes.api.model.resource.v1.ResourceSlice;
import io.fabric8.kubernetes.client.utils.Serialization;
import java.time.Duration;
import java.time.Instant;
import java.util.ArrayList;
import java.util.Collections;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.stream.Collectors;
import org.junit.jupiter.api.Test;

/** Gangs with claims that cannot get all their devices now, and do not hold up others. */
class GangTrialTest {
  private static final Instant START = Instant.parse("2026-01-01T00:00:00Z");

  private final List<Pod> pods = new ArrayList<>();
  private final Map<String, ResourceClaim> claims = new LinkedHashMap<>();
  private final List<ResourceSlice> slices = new ArrayList<>();
  private final GangClaims gangs = new GangClaims(Duration.ofSeconds(60), GangTrialTest::size);
  private int bornS;

  private static int size(Pod member, GangName gang) {
    return gang.size();
  }

  /** A node with GPUs of 8 GiB, named gpu-0, gpu-1... */
  private void node(int gpus, String more) {
    slices.clear();
    addNode("n", gpus, more);
  }

  private void addNode(String name, int gpus, String more) {
    StringBuilder devices = new StringBuilder();
    for (int i = 0; i < gpus; i++) {
      devices
          .append(i == 0 ? "" : ",")
          .append("{\"name\":\"gpu-")
          .append(i)
          .append("\",\"capacity\":{\"share\":{\"value\":\"100\"},\"memory\":{\"value\":\"8Gi\"}}")
          .append(more)
          .append('}');
    }
    String slice =
        "{'apiVersion':'resource.k8s.io/v1','kind':'ResourceSlice','metadata':{'name':'NODE'},"
            + "'spec':{'driver':'vgpu.dev','nodeName':'NODE','pool':{'name':'NODE'},'devices':[";
    slices.add(
        Serialization.unmarshal(
            slice.replace('\'', '"').replace("NODE", name) + devices + "]}}", ResourceSlice.class));
  }

  /** A pod whose claim has no device yet; each pod is a second younger than the one before. */
  private void pod(String name, Map<String, String> gang, String capacity) {
    pods.add(Pods.withClaim(name, gang, START.plusSeconds(bornS++).toString()));
    claims.put(name, claim(name, capacity, "{}"));
  }

  private static ResourceClaim claim(String name, String capacity, String status) {
    return Serialization.unmarshal(
        String.format(
            Locale.ROOT,
            """
            {"apiVersion":"resource.k8s.io/v1","kind":"ResourceClaim",
             "metadata":{"name":"%s","namespace":"default"},
             "spec":{"devices":{"requests":[{"name":"gpu","exactly":
              {"deviceClassName":"vgpu.dev","capacity":{"requests":{%s}}}}]}},
             "status":%s}""",
            name,
            capacity,
            status),
        ResourceClaim.class);
  }

  /** kube-scheduler allocates a device to a pod's claim. */
  private void allocate(String name, int gpu, String capacity) {
    String status =
        String.format(
            Locale.ROOT,
            """
            {"reservedFor":[{"resource":"pods","name":"%s","uid":"uid-%s"}],
             "allocation":{"allocationTimestamp":"%s","devices":{"results":[
              {"request":"gpu","driver":"vgpu.dev","pool":"n","device":"gpu-%d",
               "bindingConditions":["vgpu.dev/gang-complete"],"consumedCapacity":{%s}}]}}}""",
            name,
            name,
            START.plusSeconds(10),
            gpu,
            capacity);
    claims.put(name, claim(name, capacity, status));
  }

  private static String ask(int share, String memory) {
    return "\"share\":\"" + share + "\",\"memory\":\"" + memory + "\"";
  }

  /** The claims that are to give their devices back, with the reasons. */
  private Map<String, String> failed() {
    return gangs.decide(claims.values(), pods, slices, START.plusSeconds(20), 20).stream()
        .filter(verdict -> !verdict.isComplete())
        .collect(
            Collectors.toMap(
                verdict -> verdict.claim().getMetadata().getName(), GangClaims.Verdict::message));
  }

  private void member(String gang, int number, int size, String capacity) {
    pod(gang + "-" + number, Pods.gang(gang, size), capacity);
  }

  @Test
  void aGangThatHasNoRoomNowHoldsNobodyUp() {
    node(2, "");
    String all = ask(100, "1Gi");
    pod("runs", Map.of(), all);
    allocate("runs", 0, all);
    pods.set(0, Pods.bound(pods.get(0), "n", Map.of()));
    member("pair", 0, 2, all);
    allocate("pair-0", 1, all);
    assertThat(failed()).as("its other pod may not be there yet").isEmpty();
    member("pair", 1, 2, all);
    assertThat(failed()).as("nobody else waits").isEmpty();
    pod("waits", Map.of(), ask(10, "1Gi"));
    assertThat(failed())
        .containsExactly(
            Map.entry(
                "pair-0",
                "gang default/pair: 1 of 2 pods have their claims, and no GPUs have room for the"
                    + " others now"));
    claims.remove("runs");
    assertThat(failed()).as("there is room").isEmpty();
  }

  /** Each holds one of two GPUs, and needs both. */
  @Test
  void ofTwoGangsThatHoldHalfTheYoungerGivesItsDevicesBackAtOnce() {
    node(2, "");
    String all = ask(100, "1Gi");
    for (int i = 0; i < 2; i++) {
      member("old", i, 2, all);
      member("new", i, 2, all);
    }
    allocate("old-0", 0, all);
    allocate("new-0", 1, all);
    assertThat(failed().keySet()).containsExactly("new-0");
    node(3, "");
    assertThat(failed().keySet()).as("three GPUs for four pods").containsExactly("new-0");
    node(4, "");
    assertThat(failed()).isEmpty();
  }

  @Test
  void memoryCountsAsSharesDo() {
    node(2, "");
    String half = ask(10, "5Gi");
    for (int i = 0; i < 3; i++) {
      member("large", i, 3, half);
    }
    pod("waits", Map.of(), ask(10, "1Gi"));
    allocate("large-0", 0, half);
    assertThat(failed().keySet()).containsExactly("large-0");
    claims.put("large-2", claim("large-2", ask(10, "3Gi"), "{}"));
    assertThat(failed()).isEmpty();
  }

  /** The pods' claims have a count. */
  @Test
  void aRequestOfSeveralGpusNeedsRoomForAll() {
    node(3, "");
    String all = ask(100, "1Gi");
    member("pair", 0, 2, all);
    allocate("pair-0", 0, all);
    pod("waits", Map.of(), all);
    member("pair", 1, 2, all);
    request("pair-1", 2, "");
    assertThat(failed()).isEmpty();
    request("pair-1", 3, "");
    assertThat(failed().keySet()).containsExactly("pair-0");
    addNode("m", 1, "");
    assertThat(failed().keySet()).as("three, on two nodes").containsExactly("pair-0");
    addNode("l", 3, "");
    assertThat(failed()).isEmpty();
    node(3, "");

    String half = ask(50, "1Gi");
    allocate("pair-0", 0, half);
    claims.put("pair-1", claim("pair-1", half, "{}"));
    request("pair-1", 4, "");
    assertThat(failed()).as("two on each of the others").isEmpty();
    String apart = "vgpu.dev/uuid";
    request("pair-1", 3, apart);
    assertThat(failed()).isEmpty();
    request("pair-1", 4, apart);
    assertThat(failed().keySet()).as("there are three GPUs").containsExactly("pair-0");
  }

  private void request(String claim, long count, String distinct) {
    DeviceClaim devices = claims.get(claim).getSpec().getDevices();
    devices.getRequests().get(0).getExactly().setCount(count);
    if (!distinct.isEmpty()) {
      DeviceConstraint constraint = new DeviceConstraint();
      constraint.setDistinctAttribute(distinct);
      devices.setConstraints(List.of(constraint));
    }
  }

  /** A GPU with a taint is no room, except for claims that tolerate taints. */
  @Test
  void gpusThatAreLostAreNoRoom() {
    node(2, ",\"taints\":[{\"key\":\"vgpu.dev/health\",\"effect\":\"NoExecute\"}]");
    slices.get(0).getSpec().getDevices().get(0).setTaints(null);
    String all = ask(100, "1Gi");
    member("pair", 0, 2, all);
    member("pair", 1, 2, all);
    pod("waits", Map.of(), all);
    allocate("pair-0", 0, all);
    assertThat(failed().keySet()).containsExactly("pair-0");
  }

  /** For example, while a device moves from one slice to another. */
  @Test
  void aDeviceThatIsInTwoSlicesOfAPoolCountsOnce() {
    String half = ask(50, "1Gi");
    member("pair", 0, 2, half);
    member("pair", 1, 2, half);
    pod("waits", Map.of(), ask(100, "1Gi"));
    allocate("pair-0", 0, half);
    node(1, "");
    addNode("n", 1, "");
    slices.get(1).getSpec().getDevices().get(0).setCapacity(null);
    assertThat(failed()).as("it has its room").isEmpty();
    Collections.reverse(slices);
    assertThat(failed()).as("in another order").isEmpty();
    slices.set(0, slices.get(1));
    claims.put("pair-1", claim("pair-1", ask(60, "1Gi"), "{}"));
    assertThat(failed().keySet()).as("and not twice").containsExactly("pair-0");
  }

  /** kube-scheduler may know more than the slices tell. */
  @Test
  void whatIsNotKnownEndsNoGang() {
    String all = ask(100, "1Gi");
    member("pair", 0, 2, all);
    member("pair", 1, 2, all);
    pod("waits", Map.of(), all);
    allocate("pair-0", 0, all);
    assertThat(failed()).as("no slice is known").isEmpty();
    node(1, "");
    assertThat(failed().keySet()).containsExactly("pair-0");
    allocate("pair-0", 7, all);
    assertThat(failed()).as("its own device is not known").isEmpty();
    allocate("pair-0", 0, all);
    member("pair", 2, 2, ask(1, "1Gi"));
    assertThat(failed()).as("another pod of the gang may do").isEmpty();
  }

  /** Its slice has gone, for example, as the node role there was removed. */
  @Test
  void anotherPodsDeviceThatIsInNoSliceChangesNothing() {
    String all = ask(100, "1Gi");
    node(1, "");
    member("pair", 0, 2, all);
    member("pair", 1, 2, all);
    pod("waits", Map.of(), all);
    pod("elsewhere", Map.of(), all);
    allocate("pair-0", 0, all);
    allocate("elsewhere", 7, all);
    assertThat(failed().keySet()).containsExactly("pair-0");
  }

  /** Whoever wrote them, nobody else's gangs wait for ever. */
  @Test
  void slicesAndClaimsThatSayTooLittleChangeNothing() {
    String all = ask(100, "1Gi");
    node(1, "");
    member("pair", 0, 2, all);
    member("pair", 1, 2, all);
    pod("waits", Map.of(), all);
    pod("odd", Map.of(), all);
    claims
        .get("odd")
        .getSpec()
        .getDevices()
        .getRequests()
        .get(0)
        .getExactly()
        .setDeviceClassName(null);
    allocate("pair-0", 0, all);
    for (String spec :
        List.of(
            "null",
            "{'driver':'vgpu.dev','nodeName':'odd','devices':[{'name':'gpu-0'}]}",
            "{'driver':'vgpu.dev','pool':{},'devices':[{'name':'gpu-0'}]}",
            "{'driver':'vgpu.dev','pool':{'name':'odd'}}",
            "{'driver':'vgpu.dev','pool':{'name':'odd'},'devices':[{'capacity':{"
                + "'share':{'value':'100'},'memory':{'value':'8Gi'}}}]}",
            "{'driver':'vgpu.dev','pool':{'name':'odd'},'devices':[{'name':'gpu-0','capacity':{"
                + "'share':{},'memory':{'value':'8Gi'}}}]}")) {
      String slice =
          "{'apiVersion':'resource.k8s.io/v1','kind':'ResourceSlice','metadata':{'name':'odd'},"
              + "'spec':"
              + spec
              + "}";
      slices.add(Serialization.unmarshal(slice.replace('\'', '"'), ResourceSlice.class));
    }
    assertThat(failed().keySet()).containsExactly("pair-0");
  }
}
