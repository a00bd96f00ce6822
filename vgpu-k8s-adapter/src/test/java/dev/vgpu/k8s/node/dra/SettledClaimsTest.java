package dev.vgpu.k8s.node.dra;

import static org.assertj.core.api.Assertions.assertThat;

import dev.vgpu.GpuPool;
import dev.vgpu.GpuPoolOptions;
import dev.vgpu.k8s.node.ClaimJson;
import dev.vgpu.k8s.node.TestNode;
import dev.vgpu.k8s.node.health.GpuConditions;
import dev.vgpu.k8s.node.holding.Holding;
import dev.vgpu.k8s.node.holding.Holdings;
import dev.vgpu.k8s.proto.dra.Claim;
import dev.vgpu.k8s.proto.dra.NodePrepareResourceResponse;
import dev.vgpu.k8s.proto.dra.NodePrepareResourcesRequest;
import dev.vgpu.k8s.proto.dra.NodePrepareResourcesResponse;
import io.fabric8.kubernetes.api.model.resource.v1.ResourceClaim;
import io.grpc.stub.StreamObserver;
import java.io.IOException;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** A claim is prepared before the role has asked about what it held before its restart. */
class SettledClaimsTest {
  @TempDir private Path directory;
  private TestNode node;
  private Holdings holdings;
  private Claim before;

  @BeforeEach
  void open() throws IOException {
    node = new TestNode();
    before = node.create(ClaimJson.allocated("before", node.device(0), 60, "1Gi"));
    GpuPoolOptions options = GpuPoolOptions.builder().runDirectory(node.runDirectory()).build();
    try (GpuPool dead = GpuPool.open(options)) {
      holdings = holdings(dead);
      assertThat(prepare(before).getError()).isEmpty();
    }
    holdings = holdings(node.pool);
    holdings.replay(holding -> true);
  }

  private Holdings holdings(GpuPool pool) throws IOException {
    return new Holdings(pool, directory.resolve("held"), directory.resolve("cdi"), s -> {});
  }

  @AfterEach
  void close() throws IOException {
    node.close();
  }

  private NodePrepareResourceResponse prepare(Claim claim) {
    NodeDevices devices = new NodeDevices(node.pool, new GpuConditions(node.pool), TestNode.NAME);
    ClaimPlugin plugin =
        new ClaimPlugin(
            node.api, holdings, () -> new Claims(TestNode.NAME, devices.all(), 0), TestNode.NAME);
    List<NodePrepareResourcesResponse> answers = new ArrayList<>();
    plugin.nodePrepareResources(
        NodePrepareResourcesRequest.newBuilder().addClaims(claim).build(),
        new StreamObserver<>() {
          @Override
          public void onNext(NodePrepareResourcesResponse answer) {
            answers.add(answer);
          }

          @Override
          public void onError(Throwable e) {
            throw new AssertionError(e);
          }

          @Override
          public void onCompleted() {}
        });
    return answers.get(0).getClaimsOrThrow(claim.getUid());
  }

  @Test
  void whatNoClaimHasAnyMoreRefusesNobody() throws IOException {
    node.api.resources(ResourceClaim.class).inNamespace("team").withName("before").delete();
    Claim next = node.create(ClaimJson.allocated("next", node.device(0), 60, "1Gi"));
    assertThat(prepare(next).getError()).isEmpty();
    assertThat(holdings.all()).map(Holding::key).containsExactly(next.getUid());
  }

  @Test
  void whatAClaimHasRefusesOthers() {
    Claim next = node.create(ClaimJson.allocated("next", node.device(0), 60, "1Gi"));
    assertThat(prepare(next).getError()).contains("120 percent");
    assertThat(holdings.all()).map(Holding::key).containsExactly(before.getUid());
  }
}
