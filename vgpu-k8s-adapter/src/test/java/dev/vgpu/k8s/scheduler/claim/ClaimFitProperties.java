package dev.vgpu.k8s.scheduler.claim;

import static org.assertj.core.api.Assertions.assertThat;

import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.OptionalLong;
import net.jqwik.api.Arbitraries;
import net.jqwik.api.Arbitrary;
import net.jqwik.api.Combinators;
import net.jqwik.api.ForAll;
import net.jqwik.api.Property;
import net.jqwik.api.Provide;
import net.jqwik.api.Tag;

/** Random pools of GPUs, and random requests. */
@Tag("property")
class ClaimFitProperties {
  record Free(int share, int memory, boolean isTainted) {}

  @Provide
  Arbitrary<List<List<Free>>> pools() {
    Arbitrary<Integer> free = Arbitraries.integers().between(-2, 6);
    return Combinators.combine(free, free, Arbitraries.of(true, false, false, false))
        .as(Free::new)
        .list()
        .ofMinSize(1)
        .ofMaxSize(4)
        .list()
        .ofMinSize(1)
        .ofMaxSize(4);
  }

  @Provide
  Arbitrary<List<ClaimNeed>> needs() {
    Arbitrary<OptionalLong> memory =
        Arbitraries.of(OptionalLong.of(1), OptionalLong.of(3), OptionalLong.empty());
    Arbitrary<ClaimNeed.Ask> asks =
        Combinators.combine(Arbitraries.longs().between(1, 4), memory, Arbitraries.of(true, false))
            .as(ClaimNeed.Ask::new);
    return Combinators.combine(asks, Arbitraries.longs().between(1, 4), Arbitraries.of(true, false))
        .as(ClaimNeed::new)
        .list()
        .ofMinSize(1)
        .ofMaxSize(3);
  }

  /** What is free of pools, after requests have got what they ask of each GPU of one pool. */
  private static ClaimFit fit(
      List<List<Free>> pools, List<ClaimNeed> asked, List<ClaimNeed> taken, int from) {
    Map<String, Map<String, ClaimGpu>> gpus = new LinkedHashMap<>();
    for (int i = 0; i < pools.size(); i++) {
      Map<String, ClaimGpu> pool = new LinkedHashMap<>();
      for (Free free : pools.get(i)) {
        ClaimGpu gpu = new ClaimGpu(10, 10, free.isTainted);
        gpu.share = free.share;
        gpu.memory = free.memory;
        for (ClaimNeed need : i == from ? taken : List.<ClaimNeed>of()) {
          gpu.share -= need.partsOfOne() * need.ask().share();
          gpu.memory -= need.partsOfOne() * need.ask().memory().orElse(10);
        }
        pool.put("gpu-" + pool.size(), gpu);
      }
      gpus.put("pool-" + i, pool);
    }
    return new ClaimFit(gpus, asked);
  }

  /** The change of one pool has the effect that it has when all is counted again. */
  @Property(tries = 2_000)
  void aChangeOfAPoolCountsAsIfAllWereCountedAgain(
      @ForAll("pools") List<List<Free>> pools,
      @ForAll("needs") List<ClaimNeed> asked,
      @ForAll("needs") List<ClaimNeed> others) {
    ClaimFit fit = fit(pools, asked, List.of(), -1);
    List<String> names = new ArrayList<>();
    List<String> impossible = new ArrayList<>();
    for (int i = 0; i <= pools.size(); i++) { // the last one is not there
      names.add("pool-" + i);
      if (!fit(pools, asked, others, i).isPossible()) {
        impossible.add("pool-" + i);
      }
    }
    assertThat(fit.impossibleBeside(others, names)).isEqualTo(impossible);
  }

  /** Devices that are given out one by one, without looking back, are devices that fit. */
  @Property(tries = 2_000)
  void whatFitsOneByOneIsPossible(
      @ForAll("pools") List<List<Free>> pools, @ForAll("needs") List<ClaimNeed> asked) {
    List<List<Free>> left = new ArrayList<>();
    pools.forEach(pool -> left.add(new ArrayList<>(pool)));
    if (asked.stream().allMatch(need -> takes(left, need))) {
      assertThat(fit(pools, asked, List.of(), -1).isPossible()).isTrue();
    }
  }

  private static boolean takes(List<List<Free>> pools, ClaimNeed need) {
    for (List<Free> pool : pools) {
      List<Free> after = new ArrayList<>(pool);
      long parts = 0;
      for (int gpu = 0; gpu < after.size(); gpu++) {
        for (long i = 0; i < need.partsOfOne() && parts < need.count(); i++) {
          Free free = after.get(gpu);
          long memory = need.ask().memory().orElse(10);
          if (free.share < need.ask().share()
              || free.memory < memory
              || (free.isTainted && !need.ask().isTolerant())) {
            break;
          }
          after.set(
              gpu,
              new Free(
                  (int) (free.share - need.ask().share()),
                  (int) (free.memory - memory),
                  free.isTainted));
          parts++;
        }
      }
      if (parts == need.count()) {
        pool.clear();
        pool.addAll(after);
        return true;
      }
    }
    return false;
  }
}
