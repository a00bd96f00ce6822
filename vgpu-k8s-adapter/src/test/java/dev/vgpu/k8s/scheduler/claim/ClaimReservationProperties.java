package dev.vgpu.k8s.scheduler.claim;

import static org.assertj.core.api.Assertions.assertThat;

import dev.vgpu.k8s.scheduler.Pods;
import java.util.List;
import java.util.Map;
import net.jqwik.api.Arbitraries;
import net.jqwik.api.Arbitrary;
import net.jqwik.api.Combinators;
import net.jqwik.api.ForAll;
import net.jqwik.api.Property;
import net.jqwik.api.Provide;
import net.jqwik.api.ShrinkingMode;
import net.jqwik.api.Tag;

/** Random pods with claims that come after a gang. */
@Tag("property")
class ClaimReservationProperties {
  record Small(int share, int runS) {}

  @Provide
  Arbitrary<List<Small>> stream() {
    Arbitrary<Integer> runs = Arbitraries.of(0, 10, 40, 120, 400);
    return Combinators.combine(Arbitraries.of(10, 30, 50, 70, 100), runs)
        .as(Small::new)
        .list()
        .ofMinSize(20)
        .ofMaxSize(40);
  }

  /**
   * Whatever comes after a gang, it starts when the pods that ran before it have ended.
   * kube-scheduler asks before it gives devices: otherwise it may give them to each younger pod
   * once before the gang's, for longer than a gang may hold the devices that it has.
   */
  @Property(tries = 150, shrinking = ShrinkingMode.OFF)
  void nothingYoungerDelaysAGang(
      @ForAll("stream") List<Small> stream, @ForAll("stream") List<Small> before) {
    ClaimCluster random = new ClaimCluster(3);
    random.asks = true;
    int lastS = 0;
    for (int i = 0; i < 3; i++) {
      int runS = 20 + 3 * before.get(i).share;
      random.create("before-" + i, Map.of(), 100, runS);
      lastS = Math.max(lastS, runS);
    }
    random.until(10);
    assertThat(random.bound()).hasSize(3);
    for (int i = 0; i < 3; i++) {
      random.create("gang-" + i, Pods.gang("gang", 3), 100, 0);
    }
    int endS = 10 + lastS + 4 * ClaimCluster.STEP_S;
    for (int i = 0; 15 + 10 * i < endS; i++) {
      Small next = stream.get(i % stream.size());
      random.create("small-" + i, Map.of(), next.share, next.runS);
      random.until(15 + 10 * i);
    }
    random.until(endS);
    assertThat(random.bound()).contains("gang-0", "gang-1", "gang-2");
  }
}
