package dev.vgpu.k8s.scheduler;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.JsonNodeFactory;
import com.fasterxml.jackson.databind.node.ObjectNode;
import dev.vgpu.fleet.placement.Policies;
import dev.vgpu.k8s.node.MockApi;
import dev.vgpu.k8s.scheduler.line.PodLine;
import dev.vgpu.k8s.time.NanoClock;
import io.fabric8.kubernetes.api.model.Pod;
import io.fabric8.kubernetes.client.KubernetesClient;
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
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.atomic.AtomicBoolean;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;

/**
 * The extender over HTTP, with an API server that stores pods and nodes: two with two GPUs each.
 */
abstract class ExtenderOverHttp {
  static final ObjectMapper JSON = new ObjectMapper();

  final BindingDispatcher api = new BindingDispatcher();
  final KubernetesMockServer apiServer =
      new KubernetesMockServer(new Context(), new MockWebServer(), new HashMap<>(), api, false);
  final HttpClient http = HttpClient.newHttpClient();
  final ExecutorService writers = Executors.newFixedThreadPool(2);
  final AtomicBoolean leads = new AtomicBoolean(true);
  final List<String> nodes = new ArrayList<>();
  KubernetesClient client;
  ExtenderService service;
  ClusterWatch watch;
  ExtenderServer server;

  /** By UID: pods that are deleted as soon as they are found. */
  final Map<String, Pod> deleted = new ConcurrentHashMap<>();

  /** Why nodes keep their devices from pods with claims. */
  final Map<String, String> refusals = new HashMap<>();

  @BeforeEach
  void begin() throws IOException {
    apiServer.init(InetAddress.getLoopbackAddress(), 0);
    client = apiServer.createClient();
    // It tries a request that failed ten times more, but not for twenty seconds.
    client.getConfiguration().setRequestRetryBackoffInterval(1);
    Pods.nodes(2, 2).forEach(node -> client.resource(node).create());
    Pods.nodes(2, 2).forEach(node -> nodes.add(node.getMetadata().getName()));
    PodLine line = new PodLine(Policies.OURS);
    service =
        new ExtenderService(
            line,
            new Cluster(client, () -> true),
            writers,
            NanoClock.seconds(),
            Duration.ofSeconds(40),
            (pod, listed) -> pod.getSpec().getResourceClaims().isEmpty() ? Map.of() : refusals,
            (namespace, name, uid) ->
                Optional.ofNullable(deleted.remove(uid))
                    .or(() -> watch.find(namespace, name, uid)));
    watch = new ClusterWatch(client, line, service, NanoClock.seconds());
    watch.begin();
    service.carryOut();
    server =
        new ExtenderServer(
            new InetSocketAddress(InetAddress.getLoopbackAddress(), 0),
            Optional.empty(),
            service,
            leads::get);
  }

  @AfterEach
  void end() {
    server.close();
    watch.close();
    writers.shutdownNow();
    client.close();
    MockApi.end(apiServer);
  }

  HttpResponse<String> post(String path, String body) throws Exception {
    URI uri = URI.create("http://127.0.0.1:" + server.port() + path);
    return http.send(
        HttpRequest.newBuilder(uri).POST(HttpRequest.BodyPublishers.ofString(body)).build(),
        HttpResponse.BodyHandlers.ofString());
  }

  JsonNode filter(Pod pod) throws Exception {
    return filter("/filter", pod);
  }

  JsonNode filter(String path, Pod pod) throws Exception {
    ObjectNode args = JsonNodeFactory.instance.objectNode();
    args.set("Pod", JSON.valueToTree(pod));
    nodes.forEach(args.putArray("NodeNames")::add);
    return JSON.readTree(post(path, args.toString()).body());
  }

  String bind(Pod pod, String node) throws Exception {
    ObjectNode args = JsonNodeFactory.instance.objectNode();
    args.put("PodName", pod.getMetadata().getName());
    args.put("PodNamespace", pod.getMetadata().getNamespace());
    args.put("PodUID", pod.getMetadata().getUid());
    args.put("Node", node);
    return JSON.readTree(post("/bind", args.toString()).body()).path("Error").asText();
  }

  Pod create(Pod pod) {
    return client.resource(pod).create();
  }

  Pod read(Pod pod) {
    return client.resource(pod).get();
  }
}
