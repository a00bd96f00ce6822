package dev.vgpu.k8s.scheduler;

import static org.assertj.core.api.Assertions.assertThat;

import dev.vgpu.fleet.placement.Policies;
import dev.vgpu.k8s.node.MockApi;
import dev.vgpu.k8s.node.TestNode;
import dev.vgpu.k8s.time.NanoClock;
import io.fabric8.kubernetes.api.model.Pod;
import io.fabric8.kubernetes.client.KubernetesClient;
import io.fabric8.kubernetes.client.extended.leaderelection.resourcelock.LeaseLock;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.time.Duration;
import java.util.Map;
import java.util.Optional;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/** The API server has no claims, or does not show them: pods with slots are served all the same. */
class MissingClaimsTest {
  private static boolean leads(Scheduler scheduler) {
    assertThat(scheduler.elect()).isTrue();
    scheduler.read();
    return scheduler.leads();
  }

  @ParameterizedTest
  @CsvSource({"/apis/resource.k8s.io/, 404", "/resourceclaims, 403", "/resourceslices, 403"})
  void leadsWithoutThem(String path, int status) throws Exception {
    try (MockApi server = new MockApi();
        KubernetesClient api = server.client();
        Scheduler scheduler =
            new Scheduler(
                api,
                api,
                new LeaseLock("default", "lease", "one"),
                new Scheduler.Options(
                    new InetSocketAddress(InetAddress.getLoopbackAddress(), 0),
                    Optional.empty(),
                    Duration.ofSeconds(60),
                    Policies.OURS,
                    true),
                NanoClock.seconds(),
                NanoClock::wall)) {
      server.missing.put(path, status);
      api.resource(Pods.node("node-0", 1)).create();
      Pod pod = api.resource(Pods.share("a", 50, Map.of())).create();
      TestNode.await("it leads", () -> leads(scheduler));
      scheduler.tick();
      String args =
          "{\"Pod\":{\"metadata\":{\"namespace\":\"default\",\"name\":\"a\",\"uid\":\""
              + pod.getMetadata().getUid()
              + "\"}},\"NodeNames\":[\"node-0\"]}";
      HttpResponse<String> answer =
          HttpClient.newHttpClient()
              .send(
                  HttpRequest.newBuilder(
                          URI.create("http://127.0.0.1:" + scheduler.port() + "/filter"))
                      .POST(HttpRequest.BodyPublishers.ofString(args))
                      .build(),
                  HttpResponse.BodyHandlers.ofString());
      assertThat(answer.body()).contains("\"NodeNames\":[\"node-0\"]");
    }
  }
}
