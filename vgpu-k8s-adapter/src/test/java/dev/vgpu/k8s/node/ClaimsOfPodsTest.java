package dev.vgpu.k8s.node;

import static java.nio.charset.StandardCharsets.US_ASCII;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.vgpu.k8s.node.holding.Holding;
import dev.vgpu.k8s.proto.dra.Claim;
import dev.vgpu.k8s.proto.dra.Device;
import dev.vgpu.k8s.proto.dra.NodePrepareResourceResponse;
import dev.vgpu.request.PreemptionClass;
import dev.vgpu.request.SharePolicy;
import dev.vgpu.watch.GpuLease;
import java.io.IOException;
import java.net.InetAddress;
import java.net.Socket;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.stream.Stream;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;

/** Claims over real sockets, a real pool and emulated GPUs. */
class ClaimsOfPodsTest {
  private static final String ONLINE =
      "{\"apiVersion\":\"vgpu.dev/v1alpha1\",\"kind\":\"ShareParameters\","
          + "\"policy\":\"burst-share\",\"class\":\"online\"}";

  private TestNode node;
  private NodeAgent agent;

  @BeforeEach
  void open() throws IOException {
    node = new TestNode();
    agent = node.agent();
    node.kubelet.register();
  }

  @AfterEach
  void close() throws IOException {
    agent.close();
    node.close();
  }

  private List<GpuLease> leases() {
    return node.pool.leases();
  }

  @Test
  void claimBecomesAVirtualGpuAndIsGivenBack() throws Exception {
    Claim claim = node.create(ClaimJson.allocated("gpu-of-a", node.device(1), 30, "1Gi"));
    List<Device> devices = node.kubelet.prepare(claim);

    assertThat(leases()).hasSize(1);
    GpuLease lease = leases().get(0);
    assertThat(lease.gpu()).isEqualTo(node.pool.gpus().get(1).id());
    assertThat(lease.request().computePercent()).hasValue(30);
    assertThat(lease.request().memory().bytes()).isEqualTo(1L << 30);
    assertThat(lease.request().policy()).isEqualTo(SharePolicy.FIXED_SHARE);
    assertThat(devices).hasSize(1);
    assertThat(devices.get(0).getShareId()).isEqualTo("a671734a-e8e5-11e4-8fde-42010af09327");
    String id = devices.get(0).getCdiDeviceIds(0);
    assertThat(node.kubelet.variable(id, "VGPU_LEASE")).isEqualTo(lease.id());
    assertThat(node.kubelet.edits(id).orElseThrow().path("mounts")).isNotEmpty();

    node.kubelet.unprepare(claim);
    assertThat(leases()).isEmpty();
    node.kubelet.unprepare(claim);
  }

  @Test
  void whatTheFirstClaimNeedsIsOpenBefore() {
    assertThat(node.runDirectory().resolve("hook.sock")).exists();
    assertThat(leases()).isEmpty();
  }

  /** In another program, it would be a scraper on a bad network, or somebody's attack. */
  @Test
  void slowClientsOfTheMetricsDoNotHoldUpTheKubelet() throws Exception {
    Claim claim = node.create(ClaimJson.allocated("gpu-of-a", node.device(0), 30, "1Gi"));
    List<Socket> slow = new ArrayList<>();
    boolean isAnswered = false;
    // The server closes the connections after a while, so a slow machine needs another try.
    for (int tries = 0; tries < 10 && !isAnswered; tries++) {
      for (int i = 0; i < 4; i++) {
        Socket socket = new Socket(InetAddress.getLoopbackAddress(), agent.metricsPort());
        slow.add(socket);
        socket.getOutputStream().write("GET /met".getBytes(US_ASCII));
      }
      TestNode.await("requests are being read", () -> slowClients() >= 4);
      List<Device> ignored = node.kubelet.prepare(claim);
      isAnswered = slowClients() >= 4;
    }
    for (Socket socket : slow) {
      socket.close();
    }
    assertThat(isAnswered).isTrue();
  }

  /** {@return how many threads read a request of HTTP} */
  private static long slowClients() {
    return Thread.getAllStackTraces().values().stream()
        .filter(
            stack ->
                Stream.of(stack)
                    .anyMatch(
                        frame ->
                            frame.getClassName().equals("sun.net.httpserver.Request")
                                && frame.getMethodName().equals("readLine")))
        .count();
  }

  @Test
  void twiceIsOnceAlsoAtTheSameTime() throws Exception {
    Claim claim = node.create(ClaimJson.allocated("gpu-of-a", node.device(0), 30, "1Gi"));
    ExecutorService callers = Executors.newFixedThreadPool(4);
    List<Future<NodePrepareResourceResponse>> answers = new ArrayList<>();
    for (int i = 0; i < 4; i++) {
      answers.add(callers.submit(() -> node.kubelet.askToPrepare(claim)));
    }
    NodePrepareResourceResponse first = answers.get(0).get();
    for (Future<NodePrepareResourceResponse> answer : answers) {
      assertThat(answer.get()).isEqualTo(first);
    }
    callers.shutdownNow();
    assertThat(leases()).hasSize(1);
    assertThat(node.kubelet.prepare(claim)).isEqualTo(first.getDevicesList());
    assertThat(leases()).hasSize(1);
  }

  @Test
  void parametersSayPolicyAndClass() throws Exception {
    Claim claim = node.create(ClaimJson.allocated("gpu-of-a", node.device(0), "40", "1Gi", ONLINE));
    List<Device> ignored = node.kubelet.prepare(claim);
    assertThat(leases().get(0).request().policy()).isEqualTo(SharePolicy.BURST_SHARE);
    assertThat(leases().get(0).request().preemptionClass()).isEqualTo(PreemptionClass.ONLINE);
  }

  @ParameterizedTest
  @CsvSource(
      quoteCharacter = '`',
      value = {
        "0 | 1Gi | {} | share=0",
        "101 | 1Gi | {} | share=101",
        "30500m | 1Gi | {} | share=30.5",
        "30 | 64Gi | {} | memory",
        "30 | 1Gi | {\"apiVersion\":\"v1\"} | vgpu.dev/v1alpha1",
        "30 | 1Gi | {\"apiVersion\":\"vgpu.dev/v1alpha1\",\"kind\":\"ShareParameters\",\"polcy\":1}"
            + " | polcy",
        "30 | 1Gi | {\"apiVersion\":\"vgpu.dev/v1alpha1\",\"kind\":\"ShareParameters\","
            + "\"class\":\"fast\"} | online",
        "30 | 1Gi | {\"apiVersion\":\"vgpu.dev/v1alpha1\",\"kind\":\"ShareParameters\","
            + "\"offlineFloorPercent\":5} | --offline-floor",
      },
      delimiter = '|')
  void badClaimIsRefusedWithWhatWasWrong(
      String share, String memory, String parameters, String reason) {
    Claim claim =
        node.create(ClaimJson.allocated("gpu-of-a", node.device(0), share, memory, parameters));
    assertThat(node.kubelet.askToPrepare(claim).getError()).contains("gpu-of-a").contains(reason);
    assertThat(leases()).isEmpty();
    assertThat(agent.holdings().all()).isEmpty();
  }

  /** kube-scheduler does not count such a device, with or without the capacity in its result. */
  @ParameterizedTest
  @ValueSource(booleans = {true, false})
  void accessForAdministrationIsRefusedAndTakesNothing(boolean isCounted) throws Exception {
    String allocated =
        ClaimJson.allocated("admin", node.device(0), 30, "1Gi")
            .replace("\"request\":\"gpu\",", "\"request\":\"gpu\",\"adminAccess\":true,");
    Claim admin =
        node.create(isCounted ? allocated : allocated.replace("consumedCapacity", "unknown"));
    assertThat(node.kubelet.askToPrepare(admin).getError())
        .contains("team/admin", "adminAccess", "request=gpu", "/metrics");
    assertThat(leases()).isEmpty();
    assertThat(agent.holdings().all()).isEmpty();
    Claim whole = node.create(ClaimJson.allocated("whole", node.device(0), 100, "1Gi"));
    assertThat(node.kubelet.prepare(whole)).hasSize(1);
    node.kubelet.unprepare(admin);
    assertThat(leases()).hasSize(1);
  }

  @Test
  void whatDoesNotFitIsRefusedWithWhatIsFreeAndServedLater() throws Exception {
    Claim claim = node.create(ClaimJson.allocated("gpu-of-a", node.device(0), 80, "1Gi"));
    Claim second = node.create(ClaimJson.allocated("gpu-of-b", node.device(0), 30, "1Gi"));
    List<Device> ignored = node.kubelet.prepare(claim);
    assertThat(node.kubelet.askToPrepare(second).getError()).contains("gpu-of-b", "30");
    assertThat(leases()).hasSize(1);
    node.kubelet.unprepare(claim);
    assertThat(node.kubelet.prepare(second)).hasSize(1);
  }

  /** The claim's request has a count. */
  @Test
  void severalDevicesOfARequestAreOneVirtualGpuOnAll() throws Exception {
    Claim claim =
        node.create(
            ClaimJson.allocated(
                "two", List.of(node.device(1), node.device(0)), 30, List.of("1Gi", "1Gi")));
    List<Device> devices = node.kubelet.prepare(claim);
    assertThat(devices).map(Device::getDeviceName).containsExactly(node.device(1), node.device(0));
    assertThat(devices).map(Device::getShareId).doesNotHaveDuplicates();
    assertThat(leases()).hasSize(1);
    GpuLease lease = leases().get(0);
    assertThat(lease.gpus())
        .containsExactlyInAnyOrder(node.pool.gpus().get(0).id(), node.pool.gpus().get(1).id());
    assertThat(lease.request().computePercent()).hasValue(30);
    assertThat(lease.request().memory().bytes()).isEqualTo(1L << 30);
    assertThat(node.kubelet.variable(devices.get(0).getCdiDeviceIds(0), "VGPU_LEASE"))
        .isEqualTo(lease.id());
    assertThat(node.kubelet.prepare(claim)).isEqualTo(devices);

    node.kubelet.unprepare(claim);
    assertThat(leases()).isEmpty();
  }

  @Test
  void severalDevicesAreReadBackByTheNextProcess() throws Exception {
    Claim claim =
        node.create(
            ClaimJson.allocated(
                "two", List.of(node.device(1), node.device(0)), 30, List.of("1Gi", "1Gi")));
    List<Device> devices = node.kubelet.prepare(claim);
    List<Holding> before = agent.holdings().all();
    agent.close();
    agent = node.agent();
    node.kubelet.register();
    assertThat(agent.holdings().all()).isEqualTo(before);
    assertThat(node.kubelet.prepare(claim)).isEqualTo(devices);
    assertThat(leases()).hasSize(1);
  }

  @Test
  void severalDevicesComeAllOrNone() throws Exception {
    Claim one = node.create(ClaimJson.allocated("one", node.device(1), 80, "1Gi"));
    Claim two =
        node.create(
            ClaimJson.allocated(
                "two", List.of(node.device(0), node.device(1)), 30, List.of("1Gi", "1Gi")));
    List<Device> ignored = node.kubelet.prepare(one);
    assertThat(node.kubelet.askToPrepare(two).getError())
        .contains("team/two", "110 percent of gpu=" + node.pool.gpus().get(1).id());
    assertThat(leases()).hasSize(1);
    node.kubelet.unprepare(one);
    assertThat(node.kubelet.prepare(two)).hasSize(2);
  }

  @Test
  void twoPartsOfOneGpuOrUnequalPartsAreRefused() {
    Claim same =
        node.create(
            ClaimJson.allocated(
                "same", List.of(node.device(0), node.device(0)), 30, List.of("1Gi", "1Gi")));
    assertThat(node.kubelet.askToPrepare(same).getError())
        .contains("distinctAttribute: vgpu.dev/uuid", "request=gpu");
    Claim unequal =
        node.create(
            ClaimJson.allocated(
                "unequal", List.of(node.device(0), node.device(1)), 30, List.of("1Gi", "2Gi")));
    assertThat(node.kubelet.askToPrepare(unequal).getError())
        .contains("memory=1073741824 and 2147483648");
    assertThat(leases()).isEmpty();
  }

  @Test
  void claimOfTheSameNameWithAnotherUidIsRefused() {
    Claim now = node.create(ClaimJson.allocated("gpu-of-a", node.device(0), 30, "1Gi"));
    Claim before = now.toBuilder().setUid("0f8b8a4e-6f3c-4a53-9d1d-3c1b2a7c0001").build();
    assertThat(node.kubelet.askToPrepare(before).getError()).contains("uid=" + now.getUid());
    assertThat(leases()).isEmpty();
  }

  /** A pod with several claims: the kubelet sends all of them at once. */
  @Test
  void claimsOfOneCallAreAnsweredEachForItself() throws Exception {
    Claim one = node.create(ClaimJson.allocated("one", node.device(0), 30, "1Gi"));
    Claim bad = node.create(ClaimJson.allocated("bad", "no-such-device", 30, "1Gi"));
    Claim large = node.create(ClaimJson.allocated("large", node.device(0), 80, "1Gi"));
    Claim two = node.create(ClaimJson.allocated("two", node.device(1), 30, "1Gi"));
    Map<String, NodePrepareResourceResponse> answers =
        node.kubelet.askToPrepareAll(List.of(one, bad, large, two));
    assertThat(answers.get(one.getUid()).getDevicesList()).hasSize(1);
    assertThat(answers.get(bad.getUid()).getError()).contains("team/bad", "no-such-device");
    assertThat(answers.get(large.getUid()).getError()).contains("team/large", "110 percent");
    assertThat(answers.get(two.getUid()).getDevicesList()).hasSize(1);
    assertThat(leases()).hasSize(2);
    node.kubelet.unprepareAll(List.of(one, bad, large, two));
    assertThat(leases()).isEmpty();
    assertThat(node.files("cdi")).isEmpty();
  }

  @Test
  void unprepareBeforePrepareChangesNothing() throws Exception {
    Claim claim = node.create(ClaimJson.allocated("gpu-of-a", node.device(0), 30, "1Gi"));
    node.kubelet.unprepare(claim);
    assertThat(node.kubelet.prepare(claim)).hasSize(1);
    assertThat(leases()).hasSize(1);
  }

  /**
   * The API server is away: the kubelet gives up, and unprepares a claim that is being prepared.
   */
  @Test
  void aClaimThatIsUnpreparedWhileItIsPreparedIsNotHeld() throws Exception {
    Claim held = node.create(ClaimJson.allocated("held", node.device(0), 30, "1Gi"));
    Claim slow = node.create(ClaimJson.allocated("slow", node.device(1), 30, "1Gi"));
    List<Device> before = node.kubelet.prepare(held);
    assertThat(before).hasSize(1);
    node.mock.goAway();
    ExecutorService caller = Executors.newSingleThreadExecutor();
    Future<NodePrepareResourceResponse> answer =
        caller.submit(() -> node.kubelet.askToPrepare(slow));
    TestNode.await("the claim is read in vain", () -> node.mock.isAsked("/resourceclaims/slow"));
    node.kubelet.unprepare(slow);
    node.kubelet.unprepare(held);
    assertThat(leases()).as("giving back needs no API server").isEmpty();
    node.mock.comeBack();
    assertThat(answer.get().getError()).contains("team/slow", "unprepared it meanwhile");
    caller.shutdownNow();
    assertThat(leases()).isEmpty();
    assertThat(agent.holdings().all()).isEmpty();
    assertThat(node.kubelet.prepare(slow)).hasSize(1);
  }

  @Test
  void secondAgentOnTheSameNodeIsRefused() {
    assertThatThrownBy(() -> node.agent())
        .isInstanceOf(IOException.class)
        .hasMessageContaining("another vgpu-k8s node");
  }
}
