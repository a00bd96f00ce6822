package dev.vgpu.fleet.model;

import dev.vgpu.request.MemorySize;
import dev.vgpu.request.PreemptionClass;
import java.util.List;
import java.util.Random;
import java.util.Set;

/** Requests of all kinds, most of which fit {@link SmallFleets}. */
public final class RandomRequests {
  private RandomRequests() {}

  public static Request draw(String name, Random random, PreemptionClass preemptionClass) {
    Request.Builder builder = Request.builder(name).preemptionClass(preemptionClass);
    switch (random.nextInt(6)) {
      case 0 -> builder.wholeGpus(1 + random.nextInt(3));
      case 1 -> builder.shares(1 + random.nextInt(3), 1 + random.nextInt(100));
      case 2 -> builder.migInstance(List.of("1g.5gb", "3g.20gb", "7g.40gb").get(random.nextInt(3)));
      case 3 -> builder.host(random.nextInt(16_000), MemorySize.ofGibibytes(random.nextInt(32)));
      default -> builder.share(5 * (1 + random.nextInt(20)));
    }
    if (random.nextBoolean()) {
      builder.memory(MemorySize.ofMebibytes(random.nextInt(30_000)));
    }
    if (random.nextInt(4) == 0) {
      builder.models(Set.of(random.nextBoolean() ? "A100" : "T4"));
    }
    if (random.nextInt(6) == 0) {
      builder.spread("group-" + random.nextInt(2));
    }
    return builder.build();
  }
}
