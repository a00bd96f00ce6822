package dev.vgpu.k8s.scheduler;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.JsonNodeFactory;
import com.fasterxml.jackson.databind.node.ObjectNode;
import dev.vgpu.fleet.placement.Policies;
import dev.vgpu.k8s.node.MockApi;
import dev.vgpu.k8s.node.TestNode;
import dev.vgpu.k8s.scheduler.line.Place;
import dev.vgpu.k8s.time.NanoClock;
import io.fabric8.kubernetes.api.model.Pod;
import io.fabric8.kubernetes.client.Config;
import io.fabric8.kubernetes.client.ConfigBuilder;
import io.fabric8.kubernetes.client.KubernetesClient;
import io.fabric8.kubernetes.client.KubernetesClientBuilder;
import io.fabric8.kubernetes.client.extended.leaderelection.resourcelock.LeaderElectionRecord;
import io.fabric8.kubernetes.client.extended.leaderelection.resourcelock.LeaseLock;
import io.fabric8.kubernetes.client.extended.leaderelection.resourcelock.Lock;
import io.fabric8.kubernetes.client.server.mock.KubernetesMockServer;
import io.fabric8.mockwebserver.Context;
import io.fabric8.mockwebserver.MockWebServer;
import java.io.IOException;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.time.Duration;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.atomic.AtomicReference;
import java.util.concurrent.atomic.DoubleAdder;
import java.util.function.Supplier;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;

/**
 * The API server does not answer for 60 seconds of the schedulers' clock, while pods are being
 * bound. Requests that hang are served when it is back, also those whose senders gave them up.
 */
class LostLeaseTest {
  private static final ObjectMapper JSON = new ObjectMapper();
  private static final int NODES = 2;

  private final BindingDispatcher api = new BindingDispatcher();
  private final KubernetesMockServer apiServer =
      new KubernetesMockServer(new Context(), new MockWebServer(), new HashMap<>(), api, false);
  private final HttpClient http = HttpClient.newHttpClient();
  private final List<AutoCloseable> opened = new ArrayList<>();
  private final DoubleAdder nowS = new DoubleAdder();
  private KubernetesClient user;
  private Scheduler first;
  private Scheduler second;

  @BeforeEach
  void open() throws IOException {
    apiServer.init(InetAddress.getLoopbackAddress(), 0);
    user = client(10_000);
    Pods.nodes(NODES, 2).forEach(node -> user.resource(node).create());
    first = scheduler("first");
    second = scheduler("second");
    assertThat(elect(first)).isTrue();
    assertThat(elect(second)).isTrue();
    assertThat(first.leads()).isTrue();
    assertThat(second.leads()).isFalse();
  }

  @AfterEach
  void close() throws Exception {
    api.comeBack();
    for (int i = opened.size() - 1; i >= 0; i--) {
      opened.get(i).close();
    }
    MockApi.end(apiServer);
  }

  private KubernetesClient client(int timeoutMs) {
    KubernetesClient client =
        new KubernetesClientBuilder()
            .withConfig(
                new ConfigBuilder()
                    .withMasterUrl(apiServer.url("/"))
                    .withRequestTimeout(timeoutMs)
                    .withRequestRetryBackoffLimit(0)
                    .build())
            .build();
    opened.add(client);
    return client;
  }

  private Scheduler scheduler(String identity) throws IOException {
    return scheduler(new LeaseLock("default", "lease", identity));
  }

  private Scheduler scheduler(Lock lock) throws IOException {
    Scheduler scheduler =
        new Scheduler(
            client(1000),
            client(1000),
            lock,
            new Scheduler.Options(
                new InetSocketAddress(InetAddress.getLoopbackAddress(), 0),
                Optional.empty(),
                Duration.ofSeconds(60),
                Policies.OURS,
                false),
            nowS::sum,
            NanoClock::wall);
    opened.add(scheduler);
    return scheduler;
  }

  private static boolean elect(Scheduler scheduler) {
    boolean mayGoOn = scheduler.elect();
    scheduler.read();
    return mayGoOn;
  }

  private HttpResponse<String> post(Scheduler to, String path, JsonNode args) {
    try {
      URI uri = URI.create("http://127.0.0.1:" + to.port() + path);
      return http.send(
          HttpRequest.newBuilder(uri)
              .POST(HttpRequest.BodyPublishers.ofString(args.toString()))
              .build(),
          HttpResponse.BodyHandlers.ofString());
    } catch (IOException | InterruptedException e) {
      throw new AssertionError(e);
    }
  }

  private HttpResponse<String> filter(Scheduler by, Pod pod) {
    ObjectNode args = JsonNodeFactory.instance.objectNode();
    args.set("Pod", JSON.valueToTree(pod));
    var names = args.putArray("NodeNames");
    for (int i = 0; i < NODES; i++) {
      names.add("node-" + i);
    }
    return post(by, "/filter", args);
  }

  /** The pod's node; empty if it waits. */
  private String nodeFor(Scheduler by, Pod pod) {
    try {
      return JSON.readTree(filter(by, pod).body()).path("NodeNames").path(0).asText("");
    } catch (IOException e) {
      throw new AssertionError(e);
    }
  }

  private String bind(Scheduler by, Pod pod, String node) {
    ObjectNode args = JsonNodeFactory.instance.objectNode();
    args.put("PodName", pod.getMetadata().getName());
    args.put("PodNamespace", pod.getMetadata().getNamespace());
    args.put("PodUID", pod.getMetadata().getUid());
    args.put("Node", node);
    return post(by, "/bind", args).body();
  }

  private CompletableFuture<String> binding(Scheduler by, Pod pod, String node) {
    return CompletableFuture.supplyAsync(() -> bind(by, pod, node));
  }

  private Pod create(Pod pod) {
    return user.resource(pod).create();
  }

  private List<Pod> bound() {
    return user.pods().inNamespace("default").list().getItems().stream()
        .filter(pod -> pod.getSpec().getNodeName() != null)
        .toList();
  }

  /** kube-scheduler tries each pod that has no node, again and again. */
  private void scheduleAll(Scheduler by) {
    Map<String, CompletableFuture<String>> binds = new HashMap<>();
    for (int i = 0; i < 3; i++) {
      for (Pod pod : user.pods().inNamespace("default").list().getItems()) {
        String name = pod.getMetadata().getName();
        if (pod.getSpec().getNodeName() == null && !binds.containsKey(name)) {
          String node = nodeFor(by, pod);
          if (!node.isEmpty()) {
            binds.put(name, binding(by, pod, node));
          }
        }
      }
    }
    binds.values().forEach(CompletableFuture::join);
  }

  private void check() {
    Map<String, Integer> given = new HashMap<>();
    for (Pod pod : bound()) {
      Place.of(pod).orElseThrow().place().ids().forEach(id -> given.merge(id, 1, Integer::sum));
    }
    assertThat(given.values()).as("a GPU is given once").allMatch(count -> count == 1);
    assertThat(api.bindings.values()).as("a pod is bound once").allMatch(count -> count == 1);
  }

  /** The API server goes away while one of four GPUs is given to a pod. */
  private void loseApiServerWithOne() throws InterruptedException {
    Pod single = create(Pods.whole("single", 1, Map.of()));
    String place = nodeFor(first, single);
    loseApiServer(() -> List.of(binding(first, single, place)), single);
    api.comeBack();
    TestNode.await("the binding that hung is carried out", () -> bound().size() == 1);
  }

  /** The API server goes away while two of four GPUs are given to a gang. */
  private void loseApiServerWithGang() throws InterruptedException {
    List<Pod> gang = new ArrayList<>();
    Pods.gangOfWholes("pair", 2).forEach(pod -> gang.add(create(pod)));
    String ignored = nodeFor(first, gang.get(0));
    ignored = nodeFor(first, gang.get(1));
    List<String> places = gang.stream().map(pod -> nodeFor(first, pod)).toList();
    TestNode.await(
        "the gang's places are recorded",
        () -> gang.stream().allMatch(pod -> Place.of(user.resource(pod).get()).isPresent()));
    CompletableFuture<String> waits = binding(first, gang.get(0), places.get(0));
    loseApiServer(() -> List.of(waits, binding(first, gang.get(1), places.get(1))), gang.get(0));
    api.comeBack();
    TestNode.await("one that hung, at least, is carried out", () -> !bound().isEmpty());
  }

  private void loseApiServer(Supplier<List<CompletableFuture<String>>> bindings, Pod any)
      throws InterruptedException {
    api.goAway();
    List<CompletableFuture<String>> hanging = bindings.get();
    TestNode.await("a request hangs", () -> api.unserved.get() > 0);
    nowS.add(60);
    assertThat(first.leads()).isFalse();
    assertThat(filter(first, any).statusCode()).isEqualTo(503);
    assertThat(elect(first)).as("it is not known who leads").isTrue();
    assertThat(first.leads()).isFalse();
    hanging.forEach(one -> assertThat(one.join()).contains("cannot be bound"));
  }

  private void continues(Scheduler leader, Scheduler other, boolean isOtherOfUse, int pods)
      throws Exception {
    assertThat(elect(leader)).isTrue();
    assertThat(leader.leads()).isTrue();
    assertThat(elect(other)).isEqualTo(isOtherOfUse);
    assertThat(other.leads()).isFalse();
    for (int i = pods; i < 5; i++) {
      create(Pods.whole("late-" + i, 1, Map.of()));
    }
    scheduleAll(leader);
    TestNode.await("four GPUs are given, and one pod waits", () -> bound().size() == 4);
    check();
  }

  @Test
  void itsLeaderContinuesWithAPod() throws Exception {
    loseApiServerWithOne();
    continues(first, second, true, 1);
  }

  @Test
  void itsLeaderContinuesWithAGang() throws Exception {
    loseApiServerWithGang();
    continues(first, second, true, 2);
  }

  @Test
  void anotherLeaderKnowsThePodThatWasBound() throws Exception {
    loseApiServerWithOne();
    continues(second, first, false, 1);
  }

  @Test
  void anotherLeaderBindsTheRestOfAGang() throws Exception {
    loseApiServerWithGang();
    continues(second, first, false, 2);
    assertThat(bound().stream().filter(pod -> pod.getMetadata().getName().startsWith("pair")))
        .hasSize(2);
  }

  /** What it read before may be old by the time it leads. */
  @Test
  void whoeverWaitsToLeadReadsTheClusterOnlyThen() {
    assertThat(api.lists).hasValue(1);
    nowS.add(60);
    assertThat(elect(second)).isTrue();
    assertThat(second.leads()).isTrue();
    assertThat(api.lists).hasValue(2);
    assertThat(elect(first)).isFalse();
  }

  /** A lease outside of the API server, which answers one request at a time here. */
  private record MemoryLock(String identity, AtomicReference<LeaderElectionRecord> lease)
      implements Lock {
    @Override
    public String describe() {
      return identity;
    }

    @Override
    public LeaderElectionRecord get(KubernetesClient client) {
      return lease.get();
    }

    @Override
    public void create(KubernetesClient client, LeaderElectionRecord record) {
      lease.set(record);
    }

    @Override
    public void update(KubernetesClient client, LeaderElectionRecord record) {
      lease.set(record);
    }
  }

  /** In a large cluster. Otherwise the other one would take over, and read for as long. */
  @Test
  void aProcessThatReadsForLongKeepsItsLease() throws IOException {
    AtomicReference<LeaderElectionRecord> lease = new AtomicReference<>();
    Scheduler slow = scheduler(new MemoryLock("slow", lease));
    Scheduler other = scheduler(new MemoryLock("other", lease));
    assertThat(slow.elect()).isTrue();
    List<Boolean> leading = new ArrayList<>();
    api.atList =
        () -> {
          for (int i = 0; i < 4; i++) {
            nowS.add(8);
            boolean ignored = slow.elect();
            ignored = other.elect();
            leading.add(slow.leads());
          }
        };
    slow.read();
    other.read();
    assertThat(leading).as("it has not read all").containsExactly(false, false, false, false);
    assertThat(slow.leads()).isTrue();
    assertThat(other.leads()).isFalse();
  }

  @Test
  void nothingIsWrittenWithoutTheLease() {
    Pod pod = create(Pods.whole("single", 1, Map.of()));
    Cluster cluster = new Cluster(user, () -> false);
    assertThatThrownBy(() -> cluster.bind("default", "single", "uid-single", "node-0", Map.of()))
        .hasMessageContaining("does not lead");
    assertThatThrownBy(() -> cluster.annotate(pod, Map.of("a", "b")))
        .hasMessageContaining("does not lead");
    assertThatThrownBy(() -> cluster.evict(pod)).hasMessageContaining("does not lead");
    assertThat(api.writes).hasValue(0);
    assertThat(bound()).isEmpty();
  }

  /** No write may outlast the time that others wait. */
  @Test
  void writesEndBeforeAnotherOneLeads() {
    Config config = SchedulerRole.ofWrites(new ConfigBuilder().build());
    assertThat(config.getRequestTimeout()).isLessThan(1000 * (Election.LEASE_S - Election.RENEW_S));
    assertThat(config.getRequestRetryBackoffLimit()).isZero();
  }

  /** The first one was cut off; it writes nothing any more, whatever it still has to do. */
  @Test
  void whoeverLostTheLeaseWritesNothing() throws Exception {
    Pod pod = create(Pods.whole("single", 1, Map.of()));
    Pods.gangOfWholes("pair", 2).forEach(this::create);
    String place = nodeFor(first, pod);
    CompletableFuture<String> half =
        binding(first, create(Pods.whole("x", 1, Pods.gang("half", 2))), "node-0");
    half.join();
    int writes = api.writes.get();
    nowS.add(60);
    assertThat(elect(second)).isTrue();
    assertThat(second.leads()).isTrue();
    assertThat(bind(first, pod, place)).contains("another one leads");
    first.tick();
    assertThat(api.writes.get()).isEqualTo(writes);
    scheduleAll(second);
    assertThat(bound()).hasSize(3);
    check();
  }
}
