package dev.vgpu.k8s.scheduler.claim;

import static org.assertj.core.api.Assertions.assertThat;

import dev.vgpu.k8s.names.Driver;
import dev.vgpu.k8s.node.MockApi;
import dev.vgpu.k8s.scheduler.ClaimWatch;
import dev.vgpu.k8s.scheduler.Cluster;
import dev.vgpu.k8s.scheduler.Pods;
import io.fabric8.kubernetes.api.model.Condition;
import io.fabric8.kubernetes.api.model.Pod;
import io.fabric8.kubernetes.api.model.PodBuilder;
import io.fabric8.kubernetes.api.model.resource.v1.AllocatedDeviceStatus;
import io.fabric8.kubernetes.api.model.resource.v1.ResourceClaim;
import io.fabric8.kubernetes.api.model.resource.v1.ResourceClaimBuilder;
import io.fabric8.kubernetes.client.KubernetesClient;
import io.fabric8.kubernetes.client.KubernetesClientException;
import io.fabric8.kubernetes.client.utils.Serialization;
import java.time.Duration;
import java.time.ZoneOffset;
import java.time.ZonedDateTime;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Set;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** The conditions of claims for which kube-scheduler waits. The test allocates, as it does. */
class GangClaimsTest {
  private static final ZonedDateTime START =
      ZonedDateTime.of(2026, 1, 1, 0, 0, 0, 0, ZoneOffset.UTC);
  private static final String OTHER_DEVICE =
      "{\"request\":\"nic\",\"driver\":\"nic.example\",\"pool\":\"n\",\"device\":\"nic-0\"},";

  private final MockApi server = new MockApi();
  private final List<Pod> pods = new ArrayList<>();
  private KubernetesClient api;
  private ClaimWatch watch;
  private ZonedDateTime now = START;

  /** How wrong this process's time of day is, compared with that of the API. */
  private double clockIsWrongByS;

  @BeforeEach
  void open() {
    api = server.client();
    watch =
        new ClaimWatch(
            api,
            new Cluster(api, () -> true),
            Duration.ofSeconds(60),
            () -> Duration.between(START, now).toSeconds(),
            () -> now.plusNanos((long) (clockIsWrongByS * 1e9)));
  }

  @AfterEach
  void close() {
    watch.close();
    api.close();
    server.close();
  }

  /** Creates a pod, and its claim, allocated now. */
  private void allocated(String name, Map<String, String> gang) {
    Pod pod = Pods.pod(name, gang, Map.of("cpu", "1"));
    pod.getMetadata().setCreationTimestamp(now.toInstant().toString());
    pods.add(pod);
    allocate(name, "\"bindingConditions\":[\"vgpu.dev/gang-complete\"],", "");
  }

  private void allocate(String name, String conditions, String more) {
    String text =
        String.format(
            Locale.ROOT,
            """
            {"apiVersion":"resource.k8s.io/v1","kind":"ResourceClaim",
             "metadata":{"name":"%s","namespace":"default"},
             "spec":{"devices":{"requests":[]}},
             "status":{"reservedFor":[{"resource":"pods","name":"%s","uid":"uid-%s"}],
              "allocation":{"allocationTimestamp":"%s","devices":{
               "results":[%s{"request":"gpu","driver":"vgpu.dev","pool":"n","device":"gpu-0",%s
                "shareID":"a671734a-e8e5-11e4-8fde-42010af09327"}]}}}}""",
            name,
            name,
            name,
            now.toInstant(),
            more,
            conditions);
    ResourceClaim claim = Serialization.unmarshal(text, ResourceClaim.class);
    if (claim(name) == null) {
      api.resource(claim).create();
    } else {
      api.resource(claim).update();
    }
  }

  /** As kube-scheduler does after a binding has failed. */
  private void deallocated(String name) {
    api.resource(new ResourceClaimBuilder(claim(name)).withNewStatus().endStatus().build())
        .update();
  }

  private ResourceClaim claim(String name) {
    return api.resources(ResourceClaim.class).inNamespace("default").withName(name).get();
  }

  /** Reads the claims anew, and decides. */
  private void tick(int atS) {
    now = START.plusSeconds(atS);
    watch.begin();
    watch.tick(pods, Set.of());
  }

  /** The true conditions of a claim's device of vgpu. */
  private List<String> conditions(String name) {
    return devices(name).stream()
        .filter(one -> one.getDriver().equals("vgpu.dev"))
        .flatMap(one -> one.getConditions().stream())
        .filter(one -> one.getStatus().equals("True"))
        .map(Condition::getType)
        .toList();
  }

  private List<AllocatedDeviceStatus> devices(String name) {
    return claim(name).getStatus().getDevices();
  }

  @Test
  void noPodOfAGangIsBoundBeforeAllHaveTheirClaims() {
    allocated("a", Pods.gang("ring", 2));
    tick(1);
    assertThat(conditions("a")).isEmpty();
    allocated("b", Pods.gang("ring", 2));
    tick(2);
    assertThat(conditions("a")).containsExactly(Driver.GANG_COMPLETE);
    assertThat(conditions("b")).containsExactly(Driver.GANG_COMPLETE);
    String version = claim("a").getMetadata().getResourceVersion();
    tick(100);
    assertThat(claim("a").getMetadata().getResourceVersion()).isEqualTo(version);
  }

  @Test
  void aPodWithoutAGangWaitsForNoOther() {
    allocated("single", Map.of());
    tick(1);
    assertThat(conditions("single")).containsExactly(Driver.GANG_COMPLETE);
  }

  @Test
  void aGangThatIsNotCompleteInTimeGivesItsDevicesBackAndStartsOver() {
    allocated("a", Pods.gang("ring", 2));
    tick(0);
    tick(59);
    assertThat(conditions("a")).isEmpty();
    tick(60);
    assertThat(conditions("a")).containsExactly(Driver.GANG_FAILED);
    assertThat(devices("a").get(0).getConditions().get(0).getMessage())
        .contains("gang default/ring: 1 of 2 pods");

    now = START.plusSeconds(61);
    allocated("b", Pods.gang("ring", 2));
    tick(62);
    assertThat(conditions("b")).as("what is given back does not count").isEmpty();
    deallocated("a");
    tick(63);
    assertThat(conditions("b")).isEmpty();
    allocate("a", "\"bindingConditions\":[\"vgpu.dev/gang-complete\"],", "");
    tick(64);
    assertThat(conditions("a")).containsExactly(Driver.GANG_COMPLETE);
    assertThat(conditions("b")).containsExactly(Driver.GANG_COMPLETE);
  }

  /** Otherwise a clock that is ahead would fail each incomplete gang at once, again and again. */
  @ParameterizedTest
  @ValueSource(doubles = {-3600, -61, 0, 61, 3600})
  void aGangIsHeldForItsTimeHoweverWrongTheClockIs(double wrongByS) {
    clockIsWrongByS = wrongByS;
    for (int attempt = 0; attempt < 2; attempt++) {
      int beganS = attempt * 100;
      now = START.plusSeconds(beganS);
      if (attempt == 0) {
        allocated("a", Pods.gang("ring", 2));
      } else {
        allocate("a", "\"bindingConditions\":[\"vgpu.dev/gang-complete\"],", "");
      }
      tick(beganS + 1);
      tick(beganS + 60);
      assertThat(conditions("a")).isEmpty();
      tick(beganS + 61);
      assertThat(conditions("a")).containsExactly(Driver.GANG_FAILED);
      deallocated("a");
    }
  }

  /** Both would give back, and each might take its half again. */
  @Test
  void ofTwoGangsThatHoldHalfTheOldestKeepsItForAsLongAgain() {
    allocated("old-0", Pods.gang("old", 2));
    tick(0);
    now = START.plusSeconds(1);
    allocated("new-0", Pods.gang("new", 2));
    tick(1);
    tick(61);
    assertThat(conditions("new-0")).containsExactly(Driver.GANG_FAILED);
    assertThat(conditions("old-0")).isEmpty();
    tick(119);
    assertThat(conditions("old-0")).isEmpty();
    tick(120);
    assertThat(conditions("old-0")).as("not forever").containsExactly(Driver.GANG_FAILED);
  }

  @Test
  void podsThatAreBoundCountAsMembers() {
    Pod bound = Pods.pod("bound", Pods.gang("ring", 2), Map.of("cpu", "1"));
    pods.add(Pods.bound(bound, "n", Map.of()));
    allocated("again", Pods.gang("ring", 2));
    tick(1);
    assertThat(conditions("again")).containsExactly(Driver.GANG_COMPLETE);
    pods.set(0, ended(bound));
    allocated("third", Pods.gang("other", 2));
    pods.add(ended(Pods.pod("gone", Pods.gang("other", 2), Map.of("cpu", "1"))));
    tick(2);
    assertThat(conditions("third")).isEmpty();
  }

  /** Otherwise a gang that is made anew would be bound piece by piece. */
  @Test
  void podsThatAreEndingDoNotCount() {
    for (int i = 0; i < 4; i++) {
      Pod old = Pods.pod("old-" + i, Pods.gang("ring", 4), Map.of("cpu", "1"));
      old.getMetadata().setCreationTimestamp(now.toInstant().toString());
      old.getMetadata().setDeletionTimestamp(now.toInstant().toString());
      pods.add(Pods.bound(old, "n", Map.of()));
    }
    allocated("new-0", Pods.gang("ring", 4));
    tick(1);
    assertThat(conditions("new-0")).isEmpty();
    for (int i = 1; i < 4; i++) {
      allocated("new-" + i, Pods.gang("ring", 4));
    }
    tick(2);
    for (int i = 0; i < 4; i++) {
      assertThat(conditions("new-" + i)).containsExactly(Driver.GANG_COMPLETE);
    }
  }

  /** For example, the API server answers no question about groups of that version. */
  @Test
  void aGangWhoseSizeCannotBeLookedUpStopsNoOther() {
    GangClaims gangs =
        new GangClaims(
            Duration.ofSeconds(60),
            (pod, gang) -> {
              throw gang.name().equals("wrong")
                  ? new IllegalArgumentException("Name must be provided.")
                  : new KubernetesClientException("500");
            });
    allocated("wrong", Map.of("pod-group-name", "wrong"));
    allocated("fails", Map.of("pod-group-name", "fails"));
    allocated("single", Map.of());
    List<ResourceClaim> claims =
        api.resources(ResourceClaim.class).inNamespace("default").list().getItems();
    assertThat(gangs.decide(claims, pods, List.of(), now.toInstant(), 0))
        .singleElement()
        .matches(one -> one.isComplete() && one.claim().getMetadata().getName().equals("single"));
    assertThat(gangs.decide(claims, pods, List.of(), now.toInstant(), 200))
        .filteredOn(one -> !one.isComplete())
        .hasSize(2)
        .allMatch(one -> one.message().contains("its size cannot be looked up"));
  }

  private static Pod ended(Pod pod) {
    return new PodBuilder(pod).editStatus().withPhase("Succeeded").endStatus().build();
  }

  @Test
  void othersDevicesKeepWhatIsSaidOfThem() {
    pods.add(Pods.pod("both", Map.of(), Map.of("cpu", "1")));
    allocate("both", "\"bindingConditions\":[\"vgpu.dev/gang-complete\"],", OTHER_DEVICE);
    AllocatedDeviceStatus nic = new AllocatedDeviceStatus();
    nic.setDriver("nic.example");
    nic.setPool("n");
    nic.setDevice("nic-0");
    api.resource(
            new ResourceClaimBuilder(claim("both"))
                .editStatus()
                .withDevices(nic)
                .endStatus()
                .build())
        .updateStatus();
    pods.add(Pods.pod("plain", Map.of(), Map.of("cpu", "1")));
    allocate("plain", "", "");
    tick(1);
    assertThat(devices("both")).hasSize(2).contains(nic);
    assertThat(conditions("both")).containsExactly(Driver.GANG_COMPLETE);
    assertThat(devices("plain")).as("it waits for no condition").isEmpty();
  }
}
