package dev.vgpu.k8s.scheduler;

import static org.assertj.core.api.Assertions.assertThat;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.JsonNodeFactory;
import com.fasterxml.jackson.databind.node.ObjectNode;
import dev.vgpu.k8s.names.PodRequest;
import dev.vgpu.k8s.names.PodRequests;
import dev.vgpu.k8s.node.MockApi;
import dev.vgpu.k8s.node.RoleJvm;
import dev.vgpu.k8s.node.TestNode;
import dev.vgpu.k8s.scheduler.claim.ClaimConditions;
import dev.vgpu.k8s.scheduler.line.Place;
import dev.vgpu.request.PreemptionClass;
import dev.vgpu.testing.TestSeed;
import io.fabric8.kubernetes.api.model.Pod;
import io.fabric8.kubernetes.api.model.StatusDetails;
import io.fabric8.kubernetes.api.model.resource.v1.ResourceClaim;
import io.fabric8.kubernetes.client.KubernetesClient;
import io.fabric8.kubernetes.client.server.mock.KubernetesMockServer;
import io.fabric8.kubernetes.client.utils.Serialization;
import io.fabric8.mockwebserver.Context;
import io.fabric8.mockwebserver.MockWebServer;
import java.io.BufferedReader;
import java.io.IOException;
import java.net.InetAddress;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Random;
import java.util.Set;
import java.util.TreeMap;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/**
 * Kills the scheduler's process with SIGKILL at the writes of filtering, binding, evicting and of
 * claims' conditions, before or after the API server carries them out. No GPU is given twice, no
 * gang runs in part, and nothing stays held. A gang of which a pod was evicted ends, as its owner
 * would end it.
 */
@Timeout(value = 2, unit = TimeUnit.HOURS)
class SchedulerDeathIT {
  private static final ObjectMapper JSON = new ObjectMapper();
  private static final RoleJvm JVM = new RoleJvm(SchedulerProcess.class);
  private static final int ROUNDS =
      Integer.parseInt(System.getenv().getOrDefault("VGPU_POD_ROUNDS", "12"));
  private static final int NODES = 3;
  private static final int GPUS = 2;
  private static final int MOST_PODS = 8;

  /** It dies at one of so many writes. */
  private static final int MOST_WRITES = 8;

  private static final List<String> CLASSES = List.of("online", "nearline", "offline");

  private final Random random = new Random(TestSeed.seed());
  private final BindingDispatcher api = new BindingDispatcher();
  private final KubernetesMockServer apiServer =
      new KubernetesMockServer(new Context(), new MockWebServer(), new HashMap<>(), api, false);
  private final HttpClient http = HttpClient.newHttpClient();

  /** The pods of each gang or single pod, by name. */
  private final Map<String, List<Pod>> groups = new TreeMap<>();

  private KubernetesClient user;
  private Process process;
  private int port;
  private int deaths;

  @BeforeEach
  void open() throws IOException {
    apiServer.init(InetAddress.getLoopbackAddress(), 0);
    user = apiServer.createClient();
    Pods.nodes(NODES, GPUS).forEach(node -> user.resource(node).create());
    start();
  }

  @AfterEach
  void close() throws InterruptedException {
    process.destroyForcibly().waitFor();
    user.close();
    MockApi.end(apiServer);
  }

  /** Starts a process, which leads at once: the lease of the one before has ended. */
  private void start() throws IOException {
    user.leases().inNamespace("default").withName("lease").delete();
    process =
        new ProcessBuilder(JVM.command(apiServer.url("/")))
            .redirectError(ProcessBuilder.Redirect.DISCARD)
            .start();
    BufferedReader out = process.inputReader();
    String line = out.readLine();
    assertThat(line).as("it leads").startsWith("ready ");
    port = Integer.parseInt(line.substring("ready ".length()));
  }

  private void kill() {
    try {
      process.destroyForcibly().waitFor();
    } catch (InterruptedException e) {
      throw new AssertionError(e);
    }
  }

  /** The answer; missing if the process has died. */
  private JsonNode post(String path, ObjectNode args) {
    try {
      URI uri = URI.create("http://127.0.0.1:" + port + path);
      HttpRequest.BodyPublisher body = HttpRequest.BodyPublishers.ofString(args.toString());
      return JSON.readTree(
          http.send(
                  HttpRequest.newBuilder(uri).POST(body).build(),
                  HttpResponse.BodyHandlers.ofString())
              .body());
    } catch (IOException e) {
      return afterDeath(e);
    } catch (InterruptedException e) {
      throw new AssertionError(e);
    }
  }

  private JsonNode afterDeath(IOException e) {
    try {
      assertThat(process.waitFor(1, TimeUnit.MINUTES)).as("%s", e).isTrue();
      return JsonNodeFactory.instance.missingNode();
    } catch (InterruptedException interrupted) {
      throw new AssertionError(interrupted);
    }
  }

  private String filter(Pod pod) {
    ObjectNode args = JsonNodeFactory.instance.objectNode();
    args.set("Pod", JSON.valueToTree(pod));
    ArrayNode names = args.putArray("NodeNames");
    for (int i = 0; i < NODES; i++) {
      names.add("node-" + i);
    }
    return post("/filter", args).path("NodeNames").path(0).asText("");
  }

  private JsonNode bind(Pod pod, String node) {
    ObjectNode args = JsonNodeFactory.instance.objectNode();
    args.put("PodName", pod.getMetadata().getName());
    args.put("PodNamespace", pod.getMetadata().getNamespace());
    args.put("PodUID", pod.getMetadata().getUid());
    args.put("Node", node);
    return post("/bind", args);
  }

  private List<Pod> pods() {
    return user.pods().inNamespace("default").list().getItems();
  }

  private long bound() {
    return pods().stream().filter(pod -> pod.getSpec().getNodeName() != null).count();
  }

  /** kube-scheduler tries each pod that has no node, three times. */
  private void scheduleAll() {
    Map<String, CompletableFuture<JsonNode>> binds = new HashMap<>();
    for (int i = 0; i < 3; i++) {
      for (Pod pod : pods()) {
        String name = pod.getMetadata().getName();
        if (pod.getSpec().getNodeName() == null && !binds.containsKey(name)) {
          String node = filter(pod);
          if (!node.isEmpty()) {
            binds.put(name, CompletableFuture.supplyAsync(() -> bind(pod, node)));
          }
        }
      }
    }
    binds.values().forEach(CompletableFuture::join);
  }

  /** A gang or a single pod with whole GPUs, or with shares, of any class. */
  private void add(String name) {
    int size = 1 + random.nextInt(3);
    int share = random.nextBoolean() ? 0 : 20 + random.nextInt(60);
    add(name, size, share, CLASSES.get(random.nextInt(CLASSES.size())));
  }

  private void add(String name, int size, int share, String preemptionClass) {
    Map<String, String> notes = new HashMap<>(size == 1 ? Map.of() : Pods.gang(name, size));
    notes.put("vgpu.dev/class", preemptionClass);
    List<Pod> created = new ArrayList<>();
    for (int i = 0; i < size; i++) {
      String member = name + "-" + i;
      Pod pod = share == 0 ? Pods.whole(member, 1, notes) : Pods.share(member, share, notes);
      created.add(user.resource(pod).create());
    }
    groups.put(name, created);
  }

  /** Ends the gangs of which a pod was evicted, as the pods that are there tell. */
  private void endEvicted(List<Pod> pods) {
    Set<String> there = new HashSet<>();
    pods.forEach(pod -> there.add(pod.getMetadata().getName()));
    for (String name : List.copyOf(groups.keySet())) {
      if (groups.get(name).stream().anyMatch(pod -> !there.contains(pod.getMetadata().getName()))) {
        delete(name);
      }
    }
  }

  private void delete(String name) {
    for (Pod pod : groups.remove(name)) {
      List<StatusDetails> ignored = user.resource(pod).delete();
    }
  }

  /** Adds what a pod holds of its GPUs: a whole GPU of all, a share of those of its tier. */
  private static void count(Pod pod, Map<String, Integer> given) {
    PodRequest asked = PodRequests.of(pod).orElseThrow();
    boolean isOffline = asked.preemptionClass() == PreemptionClass.OFFLINE;
    int percent = asked.isWhole() ? 100 : asked.sharePercent();
    for (String id : Place.of(pod).orElseThrow().place().ids()) {
      if (asked.isWhole() || isOffline) {
        given.merge("offline tenants of " + id, percent, Integer::sum);
      }
      if (asked.isWhole() || !isOffline) {
        given.merge("other tenants of " + id, percent, Integer::sum);
      }
    }
  }

  private void check() {
    List<Pod> pods = pods();
    endEvicted(pods);
    Map<String, Integer> given = new HashMap<>();
    Map<String, Boolean> isBound = new HashMap<>();
    for (Pod pod : pods) {
      boolean is = pod.getSpec().getNodeName() != null;
      isBound.put(pod.getMetadata().getName(), is);
      if (is) {
        count(pod, given);
      }
    }
    assertThat(given.values()).as("percent of a GPU").allMatch(percent -> percent <= 100);
    groups.forEach(
        (name, members) ->
            assertThat(
                    members.stream()
                        .map(pod -> isBound.get(pod.getMetadata().getName()))
                        .distinct())
                .as(name)
                .hasSize(1));
  }

  private void round(int number) throws IOException {
    while (groups.values().stream().mapToInt(List::size).sum() > MOST_PODS
        || (!groups.isEmpty() && random.nextInt(3) == 0)) {
      List<String> names = List.copyOf(groups.keySet());
      delete(names.get(random.nextInt(names.size())));
    }
    add("g" + number);
    add("h" + number);
    int write = number == 0 ? 1 : 1 + random.nextInt(MOST_WRITES); // it dies in the first round
    api.interruptAt(write, random.nextBoolean(), this::kill);
    scheduleAll();
    api.interruptAt(0, false, () -> {});
    revive();
    scheduleAll();
    check();
  }

  private void revive() throws IOException {
    if (!process.isAlive()) {
      deaths++;
      start();
    }
  }

  @Test
  void nothingIsGivenTwiceOrInPartOrKept() throws Exception {
    for (int i = 0; i < ROUNDS; i++) {
      round(i);
    }
    endEvicted(pods());
    List.copyOf(groups.keySet()).forEach(this::delete);
    for (int i = 0; i < NODES * GPUS; i++) {
      user.resource(Pods.whole("last-" + i, 1, Map.of())).create();
    }
    TestNode.await(
        "each GPU can be had again",
        () -> {
          scheduleAll();
          return bound() == NODES * GPUS;
        });
    assertThat(deaths).isPositive();
    System.out.println("SchedulerDeathIT: rounds=" + ROUNDS + " deaths=" + deaths);
  }

  /** Three offline gangs of two hold all GPUs. An online pod needs one: two pods have to go. */
  @ParameterizedTest
  @CsvSource({"1, false", "1, true", "2, false", "2, true", "3, false", "3, true"})
  void anOnlinePodGetsItsPlaceAfterADeathBetweenEvictions(int write, boolean isAfter)
      throws Exception {
    add("low", 2, 0, "offline");
    add("lower", 2, 0, "offline");
    add("lowest", 2, 0, "offline");
    scheduleAll();
    assertThat(bound()).isEqualTo(NODES * GPUS);
    add("high", 1, 0, "online");
    api.interruptAt(write, isAfter, this::kill);
    scheduleAll();
    api.interruptAt(0, false, () -> {});
    assertThat(process.isAlive()).isFalse();
    revive();
    TestNode.await(
        "the online pod runs",
        () -> {
          endEvicted(pods());
          scheduleAll();
          return groups.get("high").stream()
              .allMatch(pod -> user.resource(pod).get().getSpec().getNodeName() != null);
        });
    check();
    assertThat(api.evicted).isNotEmpty();
  }

  /** kube-scheduler has allocated devices to a gang of three, and waits for the conditions. */
  @ParameterizedTest
  @CsvSource({"1, false", "1, true", "2, false", "2, true", "3, false", "3, true"})
  void aGangsClaimsGetTheirConditionAfterADeathBetweenThem(int write, boolean isAfter)
      throws Exception {
    for (int i = 0; i < 3; i++) {
      String name = "ring-" + i;
      Pod pod = user.resource(Pods.pod(name, Pods.gang("ring", 3), Map.of("cpu", "1"))).create();
      if (i == 2) {
        api.interruptAt(write, isAfter, this::kill);
      }
      user.resource(allocated(name, pod.getMetadata().getUid())).create();
    }
    assertThat(process.waitFor(1, TimeUnit.MINUTES)).isTrue();
    api.interruptAt(0, false, () -> {});
    revive();
    TestNode.await(
        "each claim has the condition",
        () ->
            user.resources(ResourceClaim.class).inNamespace("default").list().getItems().stream()
                .allMatch(claim -> ClaimConditions.of(claim) == ClaimConditions.COMPLETE));
  }

  private static ResourceClaim allocated(String name, String uid) {
    return Serialization.unmarshal(
        String.format(
            Locale.ROOT,
            """
            {"apiVersion":"resource.k8s.io/v1","kind":"ResourceClaim",
             "metadata":{"name":"%s","namespace":"default"},"spec":{"devices":{"requests":[]}},
             "status":{"reservedFor":[{"resource":"pods","name":"%s","uid":"%s"}],
              "allocation":{"allocationTimestamp":"2026-01-01T00:00:00Z","devices":{
               "results":[{"request":"gpu","driver":"vgpu.dev","pool":"n","device":"gpu-0",
                "bindingConditions":["vgpu.dev/gang-complete"]}]}}}}""",
            name,
            name,
            uid),
        ResourceClaim.class);
  }
}
