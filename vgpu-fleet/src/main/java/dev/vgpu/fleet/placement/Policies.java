package dev.vgpu.fleet.placement;

import dev.vgpu.fleet.model.Fleet;
import dev.vgpu.fleet.model.NodeSpec;
import java.util.List;

/** Creates placement policies by name. */
public final class Policies {
  /** The name of vgpu's own policy. */
  public static final String OURS = "vgpu";

  /** The name of the published policy that others are compared with. */
  public static final String REFERENCE = "fgd";

  private Policies() {}

  /** {@return the names, weakest policy first} */
  public static List<String> names() {
    return List.of("random", "spread", "binpack", "best-fit", REFERENCE, OURS);
  }

  /**
   * {@return a new policy for a fleet}
   *
   * @param name one of {@link #names}
   * @param fleet the fleet
   * @param workload the typical requests
   * @throws IllegalArgumentException if the name is unknown
   */
  public static PlacementPolicy of(String name, Fleet fleet, Workload workload) {
    List<NodeSpec> nodes = fleet.nodes();
    int cpu = nodes.stream().mapToInt(NodeSpec::cpuMillis).max().orElse(1);
    int gpus = nodes.stream().mapToInt(NodeSpec::gpus).max().orElse(1);
    return switch (name) {
      case "random" -> new RandomPolicy();
      case "best-fit" -> scored(new BestFitScoring(cpu, gpus));
      case REFERENCE -> scored(new FragmentationScoring(workload));
      case "spread" -> scored(new PackingScoring(true));
      case "binpack" -> scored(new PackingScoring(false));
      case OURS ->
          new TurnoverPolicy(
              scored(new StrandedScoring(workload)),
              scored(new PricedFragmentationScoring(workload)));
      default ->
          throw new IllegalArgumentException(
              "no such placement policy: " + name + " (there are " + names() + ")");
    };
  }

  private static PlacementPolicy scored(Scoring scoring) {
    return new ScoredPolicy(scoring);
  }
}
