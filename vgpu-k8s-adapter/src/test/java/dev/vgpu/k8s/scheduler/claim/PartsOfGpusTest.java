package dev.vgpu.k8s.scheduler.claim;

import static org.assertj.core.api.Assertions.assertThat;

import dev.vgpu.k8s.scheduler.Pods;
import dev.vgpu.k8s.scheduler.claim.GangClaims.Verdict;
import io.fabric8.kubernetes.api.model.Pod;
import io.fabric8.kubernetes.api.model.resource.v1.ResourceClaim;
import io.fabric8.kubernetes.api.model.resource.v1.ResourceSlice;
import io.fabric8.kubernetes.client.utils.Serialization;
import java.time.Duration;
import java.time.Instant;
import java.util.Collection;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import org.junit.jupiter.api.Test;

/** Parts of GPUs in MIG mode: kube-scheduler alone decides about them, and they are no room. */
class PartsOfGpusTest {
  private static final ResourceSlice SLICE =
      Serialization.unmarshal(
          """
          apiVersion: resource.k8s.io/v1
          kind: ResourceSlice
          metadata: {name: n-vgpu.dev}
          spec:
            driver: vgpu.dev
            nodeName: n
            pool: {name: n}
            devices:
              - {name: gpu-0, capacity: {share: {value: "100"}, memory: {value: 8Gi}}}
              - name: gpu-1-mig-3g-20gb-4
                capacity: {memory: {value: 20Gi}}
                consumesCounters: [{counterSet: gpu-1, counters: {memory-slice-4: {value: "1"}}}]
              - name: gpu-1-mig-7g-40gb-0
                capacity: {memory: {value: 40Gi}}
                consumesCounters: [{counterSet: gpu-1, counters: {memory-slice-4: {value: "1"}}}]
          """,
          ResourceSlice.class);

  private static final Instant START = Instant.parse("2026-01-01T00:00:00Z");
  private static final String PART = "3g.mig.vgpu.dev";

  private static ClaimTrial trial() {
    return new ClaimTrial(new SliceGpu.Reader().read(List.of(SLICE)));
  }

  /** A claim of a class; with a device, unless that is empty. */
  private static ResourceClaim claim(String name, String deviceClass, String device) {
    return Serialization.unmarshal(
        String.format(
            Locale.ROOT,
            """
            {"apiVersion":"resource.k8s.io/v1","kind":"ResourceClaim",
             "metadata":{"name":"%s","namespace":"default","uid":"uid-of-%s"},
             "spec":{"devices":{"requests":[
              {"name":"gpu","exactly":{"deviceClassName":"%s","count":1}}]}},
             "status":%s}""",
            name,
            name,
            deviceClass,
            device.isEmpty() ? "{}" : allocation(name, device)),
        ResourceClaim.class);
  }

  private static String allocation(String name, String device) {
    return String.format(
        Locale.ROOT,
        """
        {"reservedFor":[{"resource":"pods","name":"%s","uid":"uid-%s"}],
         "allocation":{"allocationTimestamp":"2026-01-01T00:00:00Z","devices":{"results":[
          {"request":"gpu","driver":"vgpu.dev","pool":"n","device":"%s",
           "bindingConditions":["vgpu.dev/gang-complete"]}]}}}""",
        name,
        name,
        device);
  }

  private static Pod pod(String name, String gang) {
    return Pods.withClaim(name, gang.isEmpty() ? Map.of() : Pods.gang(gang, 2), START.toString());
  }

  @Test
  void partsAreNoRoomForSharedGpus() {
    ResourceClaim whole = claim("whole", "vgpu.dev", "");
    ResourceClaim other = claim("other", "vgpu.dev", "");
    assertThat(trial().mayFit(List.of(whole))).isTrue();
    assertThat(trial().mayFit(List.of(whole, other))).isFalse();
  }

  @Test
  void claimsForPartsAskForNoSharedGpu() {
    for (String deviceClass : List.of("mig.vgpu.dev", PART)) {
      ResourceClaim part = claim("part", deviceClass, "");
      assertThat(ClaimNeed.isIn(part)).isFalse();
      assertThat(ClaimNeed.of(List.of(part, claim("whole", "vgpu.dev", "")))).hasSize(1);
      assertThat(trial().mayFit(List.of(part, part, part))).isTrue();
    }
    assertThat(ClaimNeed.isIn(claim("whole", "online.vgpu.dev", ""))).isTrue();
  }

  @Test
  void claimsWithPartsTakeNothingOfSharedGpus() {
    ClaimTrial trial = trial();
    ResourceClaim part = claim("part", PART, "gpu-1-mig-3g-20gb-4");
    trial.take(part);
    assertThat(trial.keep(List.of(part))).isTrue();
    assertThat(trial.knows(List.of(part))).isTrue();
    ResourceClaim gone = claim("gone", PART, "gpu-9");
    trial.take(gone);
    assertThat(trial.knows(List.of(part, gone))).as("a device that nobody knows").isFalse();
    assertThat(trial.mayFit(List.of(claim("whole", "vgpu.dev", "")))).isTrue();
  }

  @Test
  void claimsWithAccessForAdministrationTakeNothing() {
    ClaimTrial trial = trial();
    ResourceClaim admin = claim("admin", "vgpu.dev", "gpu-0");
    admin.getStatus().getAllocation().getDevices().getResults().get(0).setAdminAccess(true);
    trial.take(admin);
    assertThat(trial.mayFit(List.of(claim("whole", "vgpu.dev", "")))).isTrue();
  }

  /** Which device a claim of a shared GPU gets depends on shared GPUs alone. */
  @Test
  void podsThatWaitForPartsDelayNobody() {
    GangClaims gangs = new GangClaims(Duration.ofSeconds(30), (pod, gang) -> gang.size());
    List<Pod> pods = List.of(pod("part", ""), pod("young", ""));
    List<ResourceClaim> claims = List.of(claim("part", PART, ""), claim("young", "vgpu.dev", ""));
    assertThat(decide(gangs, claims, pods)).isEmpty();
    assertThat(gangs.refusals(pods.get(1), List.of(claims.get(1)), List.of("n"), START)).isEmpty();
  }

  @Test
  void gangsWithPartsAreBoundTogether() {
    GangClaims gangs = new GangClaims(Duration.ofSeconds(30), (pod, gang) -> gang.size());
    List<Pod> pods = List.of(pod("a", "ring"), pod("b", "ring"));
    ResourceClaim first = claim("a", PART, "gpu-1-mig-3g-20gb-4");
    assertThat(decide(gangs, List.of(first, claim("b", "vgpu.dev", "")), pods)).isEmpty();
    assertThat(decide(gangs, List.of(first, claim("b", "vgpu.dev", "gpu-0")), pods))
        .hasSize(2)
        .allMatch(Verdict::isComplete);
  }

  private static List<Verdict> decide(
      GangClaims gangs, Collection<ResourceClaim> claims, Collection<Pod> pods) {
    return gangs.decide(claims, pods, List.of(SLICE), START, 0);
  }
}
