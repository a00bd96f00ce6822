package dev.vgpu.k8s.scheduler;

import static org.assertj.core.api.Assertions.assertThat;

import com.fasterxml.jackson.databind.JsonNode;
import dev.vgpu.k8s.node.TestNode;
import dev.vgpu.k8s.scheduler.line.Place;
import io.fabric8.kubernetes.api.model.Node;
import io.fabric8.kubernetes.api.model.NodeBuilder;
import io.fabric8.kubernetes.api.model.Pod;
import io.fabric8.kubernetes.api.model.PodBuilder;
import io.fabric8.kubernetes.api.model.resource.v1.ResourceClaim;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** The extender over HTTP, with an API server that stores pods and nodes. */
class ExtenderServerTest extends ExtenderOverHttp {
  @Test
  void nodesKeepDevicesThatAreHeldFromPodsWithClaims() throws Exception {
    refusals.put("node-1", "its GPUs are held for gang default/large");
    Pod plain = create(Pods.pod("plain", Map.of(), Map.of("cpu", "1")));
    assertThat(filter("/filter-claims", plain).path("NodeNames")).hasSize(2);
    Pod asks =
        create(
            new PodBuilder(Pods.pod("asks", Map.of(), Map.of("cpu", "1")))
                .editSpec()
                .addNewResourceClaim()
                .withName("gpu")
                .withResourceClaimName("gpu")
                .endResourceClaim()
                .endSpec()
                .build());
    JsonNode answer = filter("/filter-claims", asks);
    assertThat(answer.path("NodeNames")).hasSize(1);
    assertThat(answer.path("NodeNames").path(0).asText()).isEqualTo("node-0");
    assertThat(answer.path("FailedAndUnresolvableNodes").path("node-1").asText())
        .contains("held for gang default/large");
  }

  @Test
  void aClaimCountsAsItIsNow() throws Exception {
    for (String node : nodes) {
      for (int gpu = 0; gpu < 2; gpu++) {
        client.resource(claim(node, gpu, 60)).create();
      }
    }
    Pod pod = create(Pods.share("a", 50, Map.of()));
    TestNode.await("it has no room", () -> !isPlaced(pod));
    client.resource(claim("node-1", 0, 40)).update();
    TestNode.await("it has room", () -> isPlaced(pod));
    client.resource(claim("node-1", 0, 60)).update();
    TestNode.await("it has lost its place", () -> !isPlaced(pod));
    client.resource(claim("node-0", 1, 60)).delete();
    client.resource(claim("node-0", 1, 10)).create(); // another one of that name
    TestNode.await("it has room again", () -> isPlaced(pod));
    assertThat(filter(pod).path("NodeNames").path(0).asText()).isEqualTo("node-0");
  }

  private static ResourceClaim claim(String node, int gpu, int share) {
    return SlotsBesideClaimsTest.claim("claim-" + node + "-" + gpu, node, gpu, share, "1Gi");
  }

  @Test
  void whatClaimsHaveIsNoRoomUntilTheyGiveItBack() throws Exception {
    ResourceClaim last = null;
    for (String node : nodes) {
      for (int gpu = 0; gpu < 2; gpu++) {
        last = SlotsBesideClaimsTest.claim("claim-" + node + "-" + gpu, node, gpu, 60, "1Gi");
        client.resource(last).create();
      }
    }
    watch.begin();
    Pod pod = create(Pods.share("a", 50, Map.of()));
    assertThat(filter(pod).path("NodeNames")).isEmpty();
    client.resource(last).delete();
    TestNode.await("it has room", () -> isPlaced(pod));
    assertThat(filter(pod).path("NodeNames").path(0).asText()).isEqualTo("node-1");
  }

  private boolean isPlaced(Pod pod) {
    try {
      return !filter(pod).path("NodeNames").isEmpty();
    } catch (Exception e) {
      throw new AssertionError(e);
    }
  }

  @Test
  void aPodIsBoundWithItsReservationInOneWrite() throws Exception {
    Pod pod = create(Pods.share("a", 30, Map.of()));
    JsonNode answer = filter(pod);
    assertThat(answer.path("Error").asText()).isEmpty();
    assertThat(answer.path("NodeNames")).hasSize(1);
    String node = answer.path("NodeNames").get(0).asText();
    assertThat(bind(pod, node)).isEmpty();
    Pod bound = read(pod);
    assertThat(bound.getSpec().getNodeName()).isEqualTo(node);
    assertThat(bound.getMetadata().getAnnotations().get("vgpu.dev/reservation"))
        .contains("GPU-" + node);
    assertThat(api.writes).hasValue(1);
    assertThat(bind(pod, node)).contains("cannot be bound");
  }

  @Test
  void aGangIsBoundTogetherWithTwoWritesForEach() throws Exception {
    List<Pod> pods = new ArrayList<>();
    for (Pod pod : Pods.gangOfWholes("ring", 4)) {
      pods.add(create(pod));
    }
    for (Pod pod : pods.subList(0, 3)) {
      JsonNode answer = filter(pod);
      assertThat(answer.path("NodeNames")).isEmpty();
      assertThat(answer.path("FailedAndUnresolvableNodes").path("node-0").asText())
          .contains("of 4 members are here");
    }
    String last = filter(pods.get(3)).path("NodeNames").path(0).asText();
    CompletableFuture<String> first =
        CompletableFuture.supplyAsync(() -> quietBind(pods.get(3), last));
    List<CompletableFuture<String>> all = new ArrayList<>(List.of(first));
    for (Pod pod : pods.subList(0, 3)) {
      assertThat(client.pods().inNamespace("default").list().getItems())
          .allMatch(one -> one.getSpec().getNodeName() == null);
      String node = filter(pod).path("NodeNames").path(0).asText();
      all.add(CompletableFuture.supplyAsync(() -> quietBind(pod, node)));
    }
    for (CompletableFuture<String> one : all) {
      assertThat(one.get()).isEmpty();
    }
    assertThat(pods).allMatch(pod -> read(pod).getSpec().getNodeName() != null);
    assertThat(api.writes).hasValue(8);
  }

  /** The extender is told that nothing was bound, and kube-scheduler tries the pods again. */
  @Test
  void aBindingWhoseAnswerIsLostCountsOnce() throws Exception {
    api.losesAnswers = true;
    List<Pod> pods = new ArrayList<>();
    Map<String, Integer> places = new HashMap<>();
    for (int i = 0; i < 4; i++) {
      Pod pod = create(Pods.share("a-" + i, 60, Map.of()));
      pods.add(pod);
      String node = filter(pod).path("NodeNames").path(0).asText();
      assertThat(bind(pod, node)).contains("cannot be bound");
      assertThat(filter(pod).path("NodeNames").path(0).asText()).isEqualTo(node);
      assertThat(bind(pod, node)).contains("cannot be bound");
      places.merge(Place.of(read(pod)).orElseThrow().place().ids().toString(), 1, Integer::sum);
    }
    assertThat(places).hasSize(4);
    api.losesAnswers = false;
    Pod late = create(Pods.share("late", 60, Map.of()));
    assertThat(filter(late).path("FailedAndUnresolvableNodes").path("node-0").asText())
        .contains("no room now");
    client.resource(pods.get(0)).delete();
    TestNode.await(
        "it is woken, with a place", () -> read(late).getMetadata().getAnnotations().size() > 2);
    assertThat(bind(late, filter(late).path("NodeNames").path(0).asText())).isEmpty();
  }

  /** Otherwise it would wait for that node for ever, and hold GPUs there. */
  @ParameterizedTest
  @ValueSource(ints = {403, 409, 500, 504})
  void aPodWhoseBindingFailedMayGetAnotherNode(int status) throws Exception {
    Pod pod = create(Pods.whole("a", 2, Map.of()));
    String first = filter(pod).path("NodeNames").path(0).asText();
    api.failsWith = status;
    assertThat(bind(pod, first)).contains("cannot be bound");
    api.failsWith = 0;
    nodes.remove(first);
    String second = filter(pod).path("NodeNames").path(0).asText();
    assertThat(second).isEqualTo(nodes.get(0));
    assertThat(bind(pod, second)).isEmpty();
    nodes.add(first);
    Pod other = create(Pods.whole("b", 2, Map.of()));
    assertThat(filter(other).path("NodeNames").path(0).asText()).as("its GPUs").isEqualTo(first);
    assertThat(bind(other, first)).isEmpty();
  }

  @Test
  void aPodWhoseBindingIsOnlySaidToHaveFailedGetsNoOtherNode() throws Exception {
    Pod pod = create(Pods.whole("a", 2, Map.of()));
    String first = filter(pod).path("NodeNames").path(0).asText();
    api.losesAnswers = true;
    assertThat(bind(pod, first)).contains("cannot be bound");
    nodes.remove(first);
    assertThat(filter(pod).path("NodeNames")).isEmpty();
  }

  /** The watch was down meanwhile: the informer tells of one change, from the old to the new. */
  @Test
  void aPodThatWasMadeAnewLeavesTheGpusOfTheOldOne() throws Exception {
    Pod old = create(Pods.whole("a", 2, Map.of()));
    Pod other = create(Pods.whole("b", 2, Map.of()));
    for (Pod pod : List.of(old, other)) {
      assertThat(bind(pod, filter(pod).path("NodeNames").path(0).asText())).isEmpty();
    }
    Pod late = create(Pods.whole("late", 2, Map.of()));
    assertThat(filter(late).path("FailedAndUnresolvableNodes").path("node-0").asText())
        .contains("no room now");
    Pod anew = new PodBuilder(old).editMetadata().withUid("anew").endMetadata().build();
    // The watch of this test is not down: it may tell late that the old one was bound.
    TestNode.await(
        "it has the GPUs of the old one",
        () -> {
          watch.new PodEvents().onUpdate(read(old), anew);
          return isPlaced(late);
        });
  }

  /** Its pods have been answered by then, and nobody asks about them again. */
  @Test
  void aGangIsWokenWhenItsGroupObjectComes() throws Exception {
    List<Pod> pods = new ArrayList<>();
    for (String name : List.of("ring-0", "ring-1")) {
      Pod asked = Pods.whole(name, 1, Map.of());
      asked.getMetadata().setLabels(Map.of("scheduling.x-k8s.io/pod-group", "ring"));
      Pod pod = create(asked);
      pods.add(pod);
      assertThat(filter(pod).path("FailedAndUnresolvableNodes").path("node-0").asText())
          .contains("its group object is not there");
    }
    service.lookForSizes(1);
    assertThat(api.writes).hasValue(0);
    PodGroups.create(client, "scheduling.x-k8s.io/v1alpha1", "ring", "minMember: 2");
    service.lookForSizes(1);
    TestNode.await(
        "they are woken, with places",
        () -> pods.stream().allMatch(pod -> Place.of(read(pod)).isPresent()));
    List<CompletableFuture<String>> binds = new ArrayList<>();
    for (Pod pod : pods) {
      String node = filter(pod).path("NodeNames").path(0).asText();
      binds.add(CompletableFuture.supplyAsync(() -> quietBind(pod, node)));
    }
    for (CompletableFuture<String> one : binds) {
      assertThat(one.get()).isEmpty();
    }
  }

  /** Its GPUs stay the same. */
  @Test
  void aChangedLabelOfANodeIsNoticed() throws Exception {
    Pod picky = Pods.whole("picky", 1, Map.of());
    picky.getSpec().setNodeSelector(Map.of("zone", "b"));
    Pod pod = create(picky);
    assertThat(filter(pod).path("FailedAndUnresolvableNodes").path("node-0").asText())
        .contains("vgpu: ", "a node selector, a taint or a cordon keeps it away");
    Node changed =
        client
            .nodes()
            .withName("node-1")
            .edit(
                node ->
                    new NodeBuilder(node)
                        .editMetadata()
                        .addToLabels("zone", "b")
                        .endMetadata()
                        .build());
    TestNode.await("it is woken, with a place", () -> Place.of(read(pod)).isPresent());
    assertThat(Place.of(read(pod)).orElseThrow().place().node())
        .isEqualTo(changed.getMetadata().getName());
  }

  private String quietBind(Pod pod, String node) {
    try {
      return bind(pod, node);
    } catch (Exception e) {
      throw new AssertionError(e);
    }
  }

  @Test
  void aPodWithoutGpusMayGoAnywhere() throws Exception {
    Pod pod = create(Pods.pod("plain", Map.of(), Map.of("cpu", "1")));
    assertThat(filter(pod).path("NodeNames")).hasSize(2);
  }

  /** kube-scheduler asks for the resource's name, and lets nobody else bind the pod. */
  @Test
  void aPodThatGetsNothingByItsResourcesIsBoundAsAnyOther() throws Exception {
    Pod pod = create(Pods.pod("others", Map.of(), Map.of("nvidia.com/priority", "1")));
    assertThat(filter(pod).path("NodeNames")).hasSize(2);
    assertThat(bind(pod, "node-1")).isEmpty();
    assertThat(read(pod).getSpec().getNodeName()).isEqualTo("node-1");
    Pod plain = create(Pods.pod("plain", Map.of(), Map.of("cpu", "1")));
    assertThat(bind(plain, "node-1")).as("not asked for").contains("no place");
  }

  @Test
  void aPodWhoseInitContainerAsksForGpusIsToldSo() throws Exception {
    Pod asks = Pods.pod("early", Map.of(), Map.of("cpu", "1"));
    asks.getSpec()
        .setInitContainers(
            Pods.share("other", 1, Map.of()).getSpec().getContainers().stream().toList());
    Pod pod = create(asks);
    assertThat(filter(pod).path("FailedAndUnresolvableNodes").path("node-0").asText())
        .contains("[vgpu.dev/slot] are asked by the init container main");
    assertThat(bind(pod, "node-0")).contains("no place");
  }

  @Test
  void aPodThatIsDeletedDuringItsQuestionHoldsNoPlace() throws Exception {
    Pod ghost = Pods.whole("ghost", 2, Map.of());
    deleted.put(ghost.getMetadata().getUid(), ghost);
    assertThat(filter(ghost).path("Error").asText()).isEmpty();
    for (String name : List.of("a", "b")) {
      assertThat(filter(create(Pods.whole(name, 2, Map.of()))).path("NodeNames")).hasSize(1);
    }
  }

  /** Anybody can write a question. What it says of a pod is not believed. */
  @Test
  void aPodThatTheApiServerDoesNotHaveGetsNoPlace() throws Exception {
    Pod real = create(Pods.share("real", 30, Map.of()));
    Pod invented = Pods.whole("invented", 2, Map.of("vgpu.dev/class", "online"));
    assertThat(filter(invented).path("Error").asText()).contains("no such pod");
    Pod other = new PodBuilder(real).editMetadata().withUid("another").endMetadata().build();
    assertThat(filter(other).path("Error").asText()).contains("no such pod");
    Pod changed =
        new PodBuilder(real)
            .editMetadata()
            .addToAnnotations("vgpu.dev/share", "90")
            .endMetadata()
            .build();
    String node = filter(changed).path("NodeNames").path(0).asText();
    assertThat(bind(changed, node)).isEmpty();
    assertThat(read(real).getMetadata().getAnnotations().get("vgpu.dev/reservation"))
        .contains("\"share\":30");
  }

  @Test
  void aQuestionThatIsTooLongIsRefused() throws Exception {
    assertThat(post("/filter", "{\"Pod\": \"" + "x".repeat(5 << 20)).statusCode()).isEqualTo(400);
  }

  @Test
  void whoDoesNotLeadAnswersNobody() throws Exception {
    leads.set(false);
    assertThat(post("/filter", "{}").statusCode()).isEqualTo(503);
    assertThat(post("/preempt", "{}").statusCode()).isEqualTo(503);
    assertThat(post("/bind", "{}").statusCode()).isEqualTo(503);
  }

  @Test
  void whatIsNotTheExtendersJsonIsRefused() throws Exception {
    assertThat(post("/filter", "no json").statusCode()).isEqualTo(400);
    assertThat(post("/filter", "{\"Nodes\":{}}").body()).contains("nodeCacheCapable");
  }
}
