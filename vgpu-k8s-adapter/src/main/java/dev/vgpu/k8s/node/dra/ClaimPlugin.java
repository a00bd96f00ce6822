package dev.vgpu.k8s.node.dra;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import dev.vgpu.VgpuException;
import dev.vgpu.k8s.node.holding.Holding;
import dev.vgpu.k8s.node.holding.Holding.Part;
import dev.vgpu.k8s.node.holding.Holding.PoolDevice;
import dev.vgpu.k8s.node.holding.Holdings;
import dev.vgpu.k8s.proto.dra.Claim;
import dev.vgpu.k8s.proto.dra.DRAPluginGrpc;
import dev.vgpu.k8s.proto.dra.Device;
import dev.vgpu.k8s.proto.dra.NodePrepareResourceResponse;
import dev.vgpu.k8s.proto.dra.NodePrepareResourcesRequest;
import dev.vgpu.k8s.proto.dra.NodePrepareResourcesResponse;
import dev.vgpu.k8s.proto.dra.NodeUnprepareResourceResponse;
import dev.vgpu.k8s.proto.dra.NodeUnprepareResourcesRequest;
import dev.vgpu.k8s.proto.dra.NodeUnprepareResourcesResponse;
import io.fabric8.kubernetes.client.KubernetesClient;
import io.fabric8.kubernetes.client.KubernetesClientException;
import io.grpc.stub.StreamObserver;
import java.io.IOException;
import java.util.HashSet;
import java.util.Optional;
import java.util.Set;
import java.util.concurrent.locks.ReentrantLock;
import java.util.function.Supplier;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * The calls that the kubelet makes to the DRA driver. Safe for use by several threads. If a claim
 * cannot be served, the answer has the reason, which the kubelet shows as an event of the pod.
 */
public final class ClaimPlugin extends DRAPluginGrpc.DRAPluginImplBase {
  private static final Logger log = LoggerFactory.getLogger(ClaimPlugin.class);
  private static final ObjectMapper JSON = new ObjectMapper();

  private final KubernetesClient api;
  private final Holdings holdings;
  private final Supplier<Claims> claims;
  private final String nodePool;
  private final ReentrantLock acting = new ReentrantLock();

  /** The preparations under way, without those whose claim was unprepared meanwhile. */
  private final Set<Preparation> preparing = new HashSet<>();

  ClaimPlugin(KubernetesClient api, Holdings holdings, Supplier<Claims> claims, String nodePool) {
    this.api = api;
    this.holdings = holdings;
    this.claims = claims;
    this.nodePool = nodePool;
    describeAnswers();
  }

  /** Protocol buffers read their descriptions when a map is first used. No pod waits for it now. */
  private static void describeAnswers() {
    NodePrepareResourcesResponse prepared =
        NodePrepareResourcesResponse.newBuilder()
            .putClaims("", NodePrepareResourceResponse.getDefaultInstance())
            .build();
    log.trace("answers take at least {} bytes", prepared.getSerializedSize());
  }

  @Override
  public void nodePrepareResources(
      NodePrepareResourcesRequest request, StreamObserver<NodePrepareResourcesResponse> answers) {
    NodePrepareResourcesResponse.Builder answer = NodePrepareResourcesResponse.newBuilder();
    for (Claim claim : request.getClaimsList()) {
      answer.putClaims(claim.getUid(), prepare(claim));
    }
    answers.onNext(answer.build());
    answers.onCompleted();
  }

  private NodePrepareResourceResponse prepare(Claim claim) {
    NodePrepareResourceResponse.Builder answer = NodePrepareResourceResponse.newBuilder();
    Preparation preparation = new Preparation(claim.getUid());
    begin(preparation);
    try {
      Holding wanted = claims.get().read(allocated(claim));
      takeSettled(preparation, wanted).parts().forEach(part -> add(answer, part));
    } catch (KubernetesClientException
        | VgpuException
        | IllegalArgumentException
        | IllegalStateException
        | IOException e) {
      log.warn("a claim is not served: {}", words(claim), e);
      return NodePrepareResourceResponse.newBuilder().setError(words(claim, e)).build();
    } finally {
      end(preparation);
    }
    return answer.build();
  }

  /** What was held before a restart, and is not used any more, refuses nobody. */
  private Holding takeSettled(Preparation preparation, Holding wanted) throws IOException {
    try {
      return take(preparation, wanted);
    } catch (VgpuException e) {
      if (!settle(api, nodePool, holdings)) {
        throw e;
      }
      return take(preparation, wanted);
    }
  }

  private void begin(Preparation preparation) {
    acting.lock();
    try {
      preparing.add(preparation);
    } finally {
      acting.unlock();
    }
  }

  private void end(Preparation preparation) {
    acting.lock();
    try {
      preparing.remove(preparation);
    } finally {
      acting.unlock();
    }
  }

  /**
   * Takes what is wanted, unless the kubelet has unprepared the claim meanwhile: it does so when
   * its call took too long, and then nobody would give back what is taken.
   */
  private Holding take(Preparation preparation, Holding wanted) throws IOException {
    acting.lock();
    try {
      if (!preparing.contains(preparation)) {
        throw new IllegalStateException("the kubelet has unprepared it meanwhile");
      }
      return holdings.take(wanted);
    } finally {
      acting.unlock();
    }
  }

  private void giveBack(String uid) throws IOException {
    acting.lock();
    try {
      preparing.removeIf(one -> one.uid.equals(uid));
      holdings.giveBack(uid);
    } finally {
      acting.unlock();
    }
  }

  /** One call that prepares a claim. Two of them are never equal. */
  private static final class Preparation {
    private final String uid;

    Preparation(String uid) {
      this.uid = uid;
    }
  }

  /** Only its first device names the CDI device: a container gets it once. */
  private void add(NodePrepareResourceResponse.Builder answer, Part part) {
    for (PoolDevice one : part.devices()) {
      Device.Builder device =
          answer
              .addDevicesBuilder()
              .addRequestNames(part.request())
              .setPoolName(nodePool)
              .setDeviceName(one.name());
      if (one.equals(part.devices().get(0))) {
        device.addCdiDeviceIds(Holdings.cdiName(part.device()));
      }
      one.shareId().ifPresent(device::setShareId);
    }
  }

  private JsonNode allocated(Claim claim) throws IOException {
    JsonNode found =
        read(api, claim.getNamespace(), claim.getName())
            .orElseThrow(() -> new IllegalArgumentException("the API server has no such claim"));
    String uid = uid(found);
    if (!claim.getUid().equals(uid)) {
      throw new IllegalArgumentException("another claim has its name by now: uid=" + uid);
    }
    return found;
  }

  /**
   * {@return a claim; empty if the API server has none of that name} The client's class of claims
   * is not used: for it, the client loads the classes of all kinds of objects, and the first pod
   * after a start waits for that.
   */
  private static Optional<JsonNode> read(KubernetesClient api, String namespace, String name)
      throws IOException {
    @Nullable String text =
        api.raw("/apis/resource.k8s.io/v1/namespaces/" + namespace + "/resourceclaims/" + name);
    return text == null ? Optional.empty() : Optional.of(JSON.readTree(text));
  }

  private static String uid(JsonNode claim) {
    return claim.path("metadata").path("uid").asText();
  }

  @Override
  public void nodeUnprepareResources(
      NodeUnprepareResourcesRequest request,
      StreamObserver<NodeUnprepareResourcesResponse> answers) {
    NodeUnprepareResourcesResponse.Builder answer = NodeUnprepareResourcesResponse.newBuilder();
    for (Claim claim : request.getClaimsList()) {
      NodeUnprepareResourceResponse.Builder one = NodeUnprepareResourceResponse.newBuilder();
      try {
        giveBack(claim.getUid());
      } catch (IOException | IllegalStateException e) {
        log.warn("a claim is not given back: {}", words(claim), e);
        one.setError(words(claim, e));
      }
      answer.putClaims(claim.getUid(), one.build());
    }
    answers.onNext(answer.build());
    answers.onCompleted();
  }

  /**
   * Gives back what claims had before a restart and do not use any more. A node that has another
   * name by now runs no pod of its old name: the kubelet ends them. A name that the cluster does
   * not have is a mistake, and costs no claim anything.
   *
   * @return whether something was given back
   * @throws KubernetesClientException if the API server cannot tell; may be tried again
   */
  static boolean settle(KubernetesClient api, String node, Holdings holdings) throws IOException {
    return holdings.settle(
        holding -> holding.owner().podUid().isPresent() || isUsed(api, node, holding));
  }

  private static boolean isUsed(KubernetesClient api, String node, Holding holding)
      throws IOException {
    Optional<JsonNode> claim =
        read(api, holding.owner().namespace(), holding.owner().name())
            .filter(found -> holding.key().equals(uid(found)));
    return claim.isPresent()
        && (!Claims.isElsewhere(claim.get(), node) || api.raw("/api/v1/nodes/" + node) == null);
  }

  private static String words(Claim claim) {
    return "claim=" + claim.getNamespace() + "/" + claim.getName() + " uid=" + claim.getUid();
  }

  private static String words(Claim claim, Exception e) {
    String message = e.getMessage();
    return "vgpu: " + words(claim) + ": " + (message == null ? e.toString() : message);
  }
}
