package dev.vgpu.k8s.scheduler.line;

import static org.assertj.core.api.Assertions.assertThat;

import dev.vgpu.k8s.names.PodRequest;
import dev.vgpu.k8s.names.PodRequests;
import dev.vgpu.k8s.scheduler.Pods;
import dev.vgpu.k8s.scheduler.SmallCluster;
import io.fabric8.kubernetes.api.model.Pod;
import io.fabric8.kubernetes.api.model.PodBuilder;
import java.util.ArrayList;
import java.util.Collections;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.Set;
import java.util.stream.Collectors;
import net.jqwik.api.ForAll;
import net.jqwik.api.Property;
import net.jqwik.api.Tag;

/**
 * No eviction is in vain: if victims may be evicted for a pod, the filter accepts it once they have
 * ended, in whatever order they end and others ask. All pods but these run on.
 */
@Tag("property")
public class PreemptionProperties {
  private static final int STEPS = 12;
  private static final int PRIORITIES = 4;

  private SmallCluster cluster;
  private Random random;

  @Property(tries = 400)
  public void aPodForWhichOthersWereEvictedIsBound(@ForAll long seed) {
    random = new Random(seed);
    cluster =
        new SmallCluster(Pods.nodes(1 + random.nextInt(3), 1 + random.nextInt(3)), "best-fit");
    for (int step = 0; step < STEPS; step++) {
      create("g" + step);
      if (random.nextInt(3) > 0) {
        cluster.settle();
      }
    }
    cluster.settle();
    for (String uid : cluster.waiting()) {
      preempt(uid);
    }
    cluster.check();
  }

  private void create(String name) {
    int size = random.nextInt(4) == 0 ? 2 : 1;
    Map<String, String> notes = new HashMap<>(Pods.gang(name, size));
    // Evictions by class are not what is tested here.
    notes.put("vgpu.dev/class", random.nextBoolean() ? "online" : "nearline");
    Map<String, String> shared = new HashMap<>(notes);
    shared.put("vgpu.dev/share", Integer.toString(10 * (1 + random.nextInt(10))));
    shared.put("vgpu.dev/memory", 10 * (1 + random.nextInt(4)) + "Gi");
    boolean isWhole = random.nextInt(4) == 0;
    for (int i = 0; i < size; i++) {
      Pod pod =
          isWhole
              ? Pods.whole(name + "-" + i, 1, notes)
              : Pods.pod(name + "-" + i, shared, Map.of("vgpu.dev/slot", "1"));
      cluster.create(
          new PodBuilder(pod)
              .editSpec()
              .withPriority(random.nextInt(PRIORITIES))
              .endSpec()
              .build());
    }
  }

  /** kube-scheduler proposes some pods of each node, and evicts those of one answered node. */
  private void preempt(String uid) {
    Pod pod = cluster.pods.get(uid);
    if (pod == null || cluster.isBound(uid) || cluster.binding.containsKey(uid)) {
      return;
    }
    Map<String, List<String>> proposed = new HashMap<>();
    for (Pod other : cluster.pods.values()) {
      boolean isProposed = random.nextInt(4) > 0 && cluster.isBound(other.getMetadata().getUid());
      if (isProposed && other.getSpec().getPriority() <= pod.getSpec().getPriority()) {
        proposed
            .computeIfAbsent(other.getSpec().getNodeName(), key -> new ArrayList<>())
            .add(other.getMetadata().getUid());
      }
    }
    List<Candidate> all =
        proposed.entrySet().stream()
            .map(one -> new Candidate(one.getKey(), one.getValue(), random.nextInt(2)))
            .toList();
    int size = PodRequests.of(pod).flatMap(PodRequest::gang).map(gang -> gang.size()).orElse(1);
    Answer answer = cluster.line.preempt(pod, all, size, cluster.nowS);
    cluster.collect();
    if (answer.kind() == Answer.Kind.NODE) {
      evict(pod, proposed.get(answer.text()), answer.text());
    }
  }

  private void evict(Pod pod, List<String> victims, String node) {
    String uid = pod.getMetadata().getUid();
    assertThat(victims)
        .allMatch(
            one -> cluster.pods.get(one).getSpec().getPriority() < pod.getSpec().getPriority());
    Set<String> others =
        cluster.pods.keySet().stream()
            .filter(one -> cluster.isBound(one) && !victims.contains(one))
            .collect(Collectors.toSet());
    List<String> order = new ArrayList<>(victims);
    Collections.shuffle(order, random);
    for (String victim : order) {
      cluster.nowS += Preemption.DUE_S / 100;
      disturb(uid);
      cluster.delete(victim);
      disturb(uid);
    }
    if (!cluster.binding.containsKey(uid)) {
      assertThat(cluster.schedule(uid, Set.of(node))).as(cluster.lastReason).isTrue();
    }
    cluster.settle();
    assertThat(cluster.isBound(uid)).isTrue();
    assertThat(others).allMatch(cluster::isBound);
  }

  /** Others ask meanwhile, and new ones come. */
  private void disturb(String uid) {
    if (random.nextBoolean()) {
      create("late" + cluster.pods.size() + "-" + random.nextInt());
    }
    for (String other : cluster.waiting()) {
      if (!other.equals(uid) && random.nextBoolean()) {
        cluster.schedule(other);
      }
    }
    if (random.nextBoolean()) {
      List.copyOf(cluster.actions).forEach(cluster::act);
    }
    cluster.line.tick(cluster.nowS);
    cluster.collect();
  }
}
