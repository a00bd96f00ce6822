package dev.vgpu.k8s.scheduler;

import static org.assertj.core.api.Assertions.assertThat;

import io.fabric8.kubernetes.api.model.Pod;
import io.fabric8.kubernetes.api.model.PodBuilder;
import io.fabric8.kubernetes.api.model.resource.v1.ResourceClaim;
import io.fabric8.kubernetes.client.utils.Serialization;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.Test;

class ShowCommandTest {
  private static final String CLAIM =
      """
      apiVersion: resource.k8s.io/v1
      kind: ResourceClaim
      metadata: {name: third, namespace: default}
      spec:
        devices:
          requests:
            - name: gpu
              exactly: {deviceClassName: vgpu.dev, capacity: {requests: {share: 30, memory: 2Gi}}}
          config:
            - opaque: {driver: vgpu.dev, parameters: {policy: burst-share, class: online}}
      """;

  private static final String ALLOCATION =
      """
      status:
        allocation:
          devices:
            results:
              - {request: gpu, driver: vgpu.dev, pool: node-0, device: gpu-node-0-0}
            config:
              - {source: FromClass, opaque: {driver: vgpu.dev, parameters: {class: offline}}}
              - {source: FromClaim, opaque: {driver: vgpu.dev, parameters: {policy: burst-share}}}
      """;

  @Test
  void tellsWhoHoldsWhatAndWhyOthersWait() {
    SmallCluster cluster = new SmallCluster(Pods.nodes(1, 1));
    cluster.create(Pods.share("runs", 30, Map.of("vgpu.dev/class", "online")));
    cluster.settle();
    Pod waits =
        new PodBuilder(Pods.whole("waits", 2, Map.of()))
            .editStatus()
            .addNewCondition()
            .withType("PodScheduled")
            .withMessage("0/1 nodes are available: 1 gang waits")
            .endCondition()
            .endStatus()
            .build();
    Pod ended =
        new PodBuilder(Pods.share("ended", 30, Map.of()))
            .editStatus()
            .withPhase("Succeeded")
            .endStatus()
            .build();
    Pod wrong = Pods.share("wrong", 101, Map.of());
    Pod plain = Pods.pod("plain", Map.of(), Map.of("cpu", "1"));
    List<String> lines =
        lines(List.of(waits, plain, wrong, ended, cluster.pods.get("uid-runs")), List.of());
    assertThat(lines).hasSize(4);
    assertThat(lines.get(1)).contains("node-0", "default/runs", "30%", "online", "GPU-node-0-0");
    assertThat(lines.get(2)).contains("default/waits", "2 x whole", "1 gang waits");
    assertThat(lines.get(3)).contains("default/wrong", "refused", "asked 101");
  }

  @Test
  void tellsWhatAClaimHoldsAndWithWhichParameters() {
    List<String> lines = lines(List.of(withClaim("node-0")), List.of(claim(CLAIM + ALLOCATION)));
    assertThat(lines).hasSize(2);
    assertThat(lines.get(1))
        .matches(
            "node-0 +default/user +claim third +30% +2GiB +burst-share +offline +gpu-node-0-0");
  }

  @Test
  void aClaimWithoutDevicesWaits() {
    assertThat(lines(List.of(withClaim("")), List.of(claim(CLAIM))).get(1))
        .matches("- +default/user +claim third +30% +2GiB +burst-share +online +not looked at yet");
  }

  @Test
  void aClaimForAPartOfAGpuTellsItsDevice() {
    String asked = "Name: vgpu.dev, capacity: {requests: {share: 30, memory: 2Gi}}";
    ResourceClaim part = claim(CLAIM.replace(asked, "Name: 3g.mig.vgpu.dev") + ALLOCATION);
    List<String> lines = lines(List.of(withClaim("node-0")), List.of(part));
    assertThat(lines).hasSize(2);
    assertThat(lines.get(1)).contains("node-0", "claim third", " part ", "gpu-node-0-0");
  }

  @Test
  void aPodThatIsNotBoundYetIsSaidToHoldItsDevices() {
    assertThat(lines(List.of(withClaim("")), List.of(claim(CLAIM + ALLOCATION))).get(1))
        .startsWith("-")
        .endsWith("gpu-node-0-0 its claim has devices; the pod is not bound yet");
  }

  @Test
  void claimsOfOtherDriversAreLeftOut() {
    ResourceClaim other = claim(CLAIM.replace("Name: vgpu.dev", "Name: gpu.example.com"));
    assertThat(PodRow.of(List.of(withClaim("node-0")), List.of(other))).isEmpty();
  }

  private static List<String> lines(List<Pod> pods, List<ResourceClaim> claims) {
    return ShowCommand.lines(PodRow.of(pods, claims));
  }

  private static ResourceClaim claim(String yaml) {
    return Serialization.unmarshal(yaml, ResourceClaim.class);
  }

  private static Pod withClaim(String node) {
    Pod pod = Pods.pod("user", Map.of(), Map.of());
    return Pods.bound(Pods.withClaim(pod, "third", "2026-01-01T00:00:00Z"), node, Map.of());
  }
}
