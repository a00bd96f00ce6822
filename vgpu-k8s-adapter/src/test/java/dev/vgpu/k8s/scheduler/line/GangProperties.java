package dev.vgpu.k8s.scheduler.line;

import static org.assertj.core.api.Assertions.assertThat;

import dev.vgpu.k8s.names.PodRequests;
import dev.vgpu.k8s.scheduler.Pods;
import dev.vgpu.k8s.scheduler.SmallCluster;
import io.fabric8.kubernetes.api.model.Pod;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.Set;
import java.util.concurrent.CompletableFuture;
import net.jqwik.api.ForAll;
import net.jqwik.api.Property;
import net.jqwik.api.Tag;

/**
 * No gang ever runs in part, in whatever order its pods are filtered, recorded, bound and ended,
 * and however often the scheduler is killed. A pod that names another one runs beside it.
 */
@Tag("property")
public class GangProperties {
  private static final List<String> CLASSES = List.of("online", "nearline", "offline");
  private static final int STEPS = 30;

  private final Map<String, List<String>> gangs = new HashMap<>();
  private final Set<String> ended = new HashSet<>();

  @Property(tries = 400)
  public void allOfAGangRunOrNone(@ForAll long seed) {
    gangs.clear();
    ended.clear();
    Random random = new Random(seed);
    SmallCluster cluster =
        new SmallCluster(Pods.nodes(1 + random.nextInt(3), 1 + random.nextInt(4)), "best-fit");
    for (int step = 0; step < STEPS; step++) {
      cluster.nowS += random.nextDouble();
      step(cluster, random, step);
    }
    cluster.settle();
    for (Map.Entry<String, List<String>> gang : gangs.entrySet()) {
      long bound = gang.getValue().stream().filter(cluster::isBound).count();
      // A gang with deleted or evicted members is not whole any more.
      if (!ended.contains(gang.getKey()) && cluster.pods.keySet().containsAll(gang.getValue())) {
        assertThat(bound).as(gang.getKey()).isIn(0L, (long) gang.getValue().size());
      }
    }
    cluster.check();
    checkBeside(cluster);
  }

  /** A pod is on the node of the one that it names, if both run; ended gangs are not whole. */
  private void checkBeside(SmallCluster cluster) {
    for (Pod pod : cluster.pods.values()) {
      String name = PodRequests.of(pod).orElseThrow().sameNodeAs();
      Pod other = cluster.pods.get("uid-" + name.substring(name.indexOf('/') + 1));
      if (other == null || ended.contains(gang(pod)) || ended.contains(gang(other))) {
        continue;
      }
      String node = pod.getSpec().getNodeName();
      if (node != null && other.getSpec().getNodeName() != null) {
        assertThat(node)
            .as(pod.getMetadata().getName() + " beside " + name)
            .isEqualTo(other.getSpec().getNodeName());
      }
    }
  }

  private static String gang(Pod pod) {
    return pod.getMetadata().getAnnotations().get("vgpu.dev/gang");
  }

  private void step(SmallCluster cluster, Random random, int step) {
    switch (random.nextInt(12)) {
      case 0, 1, 2 -> create(cluster, random, "g" + step);
      case 3, 4, 5, 6 -> one(cluster.waiting(), random).forEach(cluster::schedule);
      case 7, 8 -> one(new ArrayList<>(cluster.binding.keySet()), random).forEach(cluster::bind);
      case 9 -> one(cluster.actions, random).forEach(cluster::act);
      case 10 -> end(cluster, random);
      default -> {
        if (random.nextInt(4) == 0) {
          cluster.restart();
        } else {
          disturb(cluster, random);
        }
      }
    }
  }

  private void create(SmallCluster cluster, Random random, String name) {
    int size = 1 + random.nextInt(4);
    Map<String, String> notes = new HashMap<>(Pods.gang(name, size));
    notes.put("vgpu.dev/class", CLASSES.get(random.nextInt(3)));
    boolean isWhole = random.nextBoolean();
    int percent = 10 * (1 + random.nextInt(10));
    List<String> members = new ArrayList<>();
    for (int i = 0; i < size; i++) {
      String member = name + "-" + i;
      notes.remove("vgpu.dev/same-node-as");
      if (random.nextInt(4) == 0) {
        int step = Integer.parseInt(name.substring(1));
        String other = "g" + Math.max(0, step + random.nextInt(12) - 8) + "-" + random.nextInt(2);
        notes.put("vgpu.dev/same-node-as", other.equals(member) ? "g-none" : other);
      }
      Pod pod = isWhole ? Pods.whole(member, 1, notes) : Pods.share(member, percent, notes);
      cluster.create(pod);
      members.add(pod.getMetadata().getUid());
    }
    gangs.put(name, members);
  }

  private static <T> List<T> one(List<T> all, Random random) {
    return all.isEmpty() ? List.of() : List.of(all.get(random.nextInt(all.size())));
  }

  /** Deletes a gang, member by member; sometimes only one member. */
  private void end(SmallCluster cluster, Random random) {
    for (String gang : one(List.copyOf(gangs.keySet()), random)) {
      ended.add(gang);
      List<String> members = gangs.get(gang);
      boolean isAll = random.nextInt(3) > 0;
      boolean isPart =
          members.stream()
              .anyMatch(uid -> cluster.isBound(uid) || isGoing(cluster.binding.get(uid)));
      (isAll ? members : members.subList(0, 1)).forEach(cluster::delete);
      if (!isAll && !isPart) {
        cluster.settle();
        assertThat(members.size() > 1 && cluster.isBound(members.get(1))).isFalse();
      }
    }
  }

  private static boolean isGoing(CompletableFuture<String> go) {
    return go != null && go.isDone() && go.join().isEmpty();
  }

  /** A bind takes too long, a write fails, or an eviction is refused. */
  private static void disturb(SmallCluster cluster, Random random) {
    if (random.nextBoolean()) {
      one(new ArrayList<>(cluster.binding.keySet()), random)
          .forEach(uid -> cluster.line.tooLate(uid, "too long", cluster.nowS));
    }
    for (Action action : one(cluster.actions, random)) {
      cluster.actions.remove(action);
      if (action instanceof Action.Evict evict) {
        cluster.line.evictionRefused(evict.crew(), "a budget", cluster.nowS);
      } else if (action instanceof Action.Write write) {
        cluster.line.giveUp(write.pod().getMetadata().getUid(), "not written", cluster.nowS);
      }
    }
    cluster.collect();
  }
}
