package dev.vgpu.k8s.scheduler;

import static org.assertj.core.api.Assertions.assertThat;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.JsonNodeFactory;
import com.fasterxml.jackson.databind.node.ObjectNode;
import dev.vgpu.k8s.node.TestNode;
import io.fabric8.kubernetes.api.model.Pod;
import java.net.http.HttpResponse;
import java.util.List;
import java.util.Map;
import java.util.concurrent.atomic.AtomicReference;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** What kube-scheduler asks before it evicts pods of lower priority, over HTTP. */
class PreemptVerbTest extends ExtenderOverHttp {
  private JsonNode preempt(Pod pod, JsonNode proposed) throws Exception {
    ObjectNode args = JsonNodeFactory.instance.objectNode();
    args.set("Pod", JSON.valueToTree(pod));
    args.set("NodeNameToMetaVictims", proposed);
    HttpResponse<String> answer = post("/preempt", args.toString());
    assertThat(answer.statusCode()).as(answer.body()).isEqualTo(200);
    return JSON.readTree(answer.body()).path("NodeNameToMetaVictims");
  }

  /** Four pods fill all GPUs; those of one node are proposed, and one of the two on the other. */
  private ObjectNode fullNodes() throws Exception {
    ObjectNode proposed = JsonNodeFactory.instance.objectNode();
    for (String name : List.of("a", "b", "c", "d")) {
      Pod pod = create(Pods.share(name, 100, Map.of()));
      String node = filter(pod).path("NodeNames").path(0).asText();
      assertThat(bind(pod, node)).isEmpty();
      if (!name.equals("d")) {
        proposed.withObjectProperty(node).put("NumPDBViolations", 0);
        proposed
            .withObjectProperty(node)
            .withArrayProperty("Pods")
            .addObject()
            .put("UID", pod.getMetadata().getUid());
      }
    }
    assertThat(proposed).hasSize(2);
    return proposed;
  }

  @Test
  void podsAreEvictedWhereThatMakesRoomOnTheGpus() throws Exception {
    ObjectNode proposed = fullNodes();
    Pod high = Pods.whole("high", 2, Map.of());
    high.getSpec().setPriority(1);
    assertThat(preempt(high, proposed)).as("the API server has no such pod").isEmpty();
    Pod pod = create(high);
    AtomicReference<JsonNode> kept = new AtomicReference<>(proposed);
    TestNode.await("its victims are seen to run", () -> isKept(pod, proposed, kept));
    String node = kept.get().fieldNames().next();
    assertThat(kept.get().path(node)).isEqualTo(proposed.path(node));
    assertThat(kept.get().path(node).path("Pods")).hasSize(2);
    for (JsonNode victim : kept.get().path(node).path("Pods")) {
      client.pods().inNamespace("default").list().getItems().stream()
          .filter(one -> one.getMetadata().getUid().equals(victim.path("UID").asText()))
          .forEach(one -> client.resource(one).delete());
    }
    assertThat(filter(pod).path("NodeNames").path(0).asText()).isEqualTo(node);
    assertThat(bind(pod, node)).isEmpty();
  }

  private boolean isKept(Pod pod, ObjectNode proposed, AtomicReference<JsonNode> kept) {
    try {
      kept.set(preempt(pod, proposed));
      return kept.get().size() == 1;
    } catch (Exception e) {
      throw new AssertionError(e);
    }
  }

  @Test
  void nobodyIsEvictedForAPodOfNoHigherPriority() throws Exception {
    assertThat(preempt(create(Pods.whole("same", 2, Map.of())), fullNodes())).isEmpty();
  }

  /** kube-scheduler asks for the resource's name. */
  @Test
  void aPodThatGetsNothingByItsResourcesIsLeftToKubeScheduler() throws Exception {
    ObjectNode proposed = fullNodes();
    Pod pod = create(Pods.pod("others", Map.of(), Map.of("nvidia.com/priority", "1")));
    assertThat(preempt(pod, proposed)).isEqualTo(proposed);
  }

  @ParameterizedTest
  @ValueSource(
      strings = {
        "'NodeNameToVictims': {'node-0': {'Pods': [], 'NumPDBViolations': 0}}",
        "'NodeNameToMetaVictims': {'node-0': {'Pods': [{'UID': ''}], 'NumPDBViolations': 0}}",
        "'NodeNameToMetaVictims': {'node-0': {'Pods': [], 'NumPDBViolations': 0}}",
        "'NodeNameToMetaVictims': {'node-0': {'Pods': [{'UID': 'a'}]}}",
        "'NodeNameToMetaVictims': {'node-0': null}",
        "'NodeNameToMetaVictims': []"
      })
  void aWrongQuestionIsRefused(String proposed) throws Exception {
    String args = "{'Pod': {'metadata': {'name': 'a'}}, " + proposed + "}";
    HttpResponse<String> answer = post("/preempt", args.replace('\'', '"'));
    assertThat(answer.statusCode()).isEqualTo(400);
    assertThat(answer.body()).contains(" are needed: ");
  }
}
