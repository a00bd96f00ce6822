package dev.vgpu.fleet.model;

import static org.assertj.core.api.Assertions.assertThat;

import dev.vgpu.request.MemorySize;
import dev.vgpu.request.PreemptionClass;
import java.util.ArrayList;
import java.util.List;
import java.util.stream.IntStream;

/** Fleets for tests, and their invariants. */
public final class SmallFleets {
  public static final MemorySize CARD = MemorySize.ofGibibytes(40);
  public static final MigCut CUT_1G = new MigCut("1g.5gb", 1, List.of(0, 1, 2, 3, 4, 5, 6));
  public static final MigCut CUT_3G = new MigCut("3g.20gb", 4, List.of(0, 4));
  public static final MigCut CUT_7G = new MigCut("7g.40gb", 8, List.of(0));

  private SmallFleets() {}

  public static Fleet alike(int nodes, int gpus) {
    return new Fleet(
        IntStream.range(0, nodes)
            .mapToObj(i -> node("node-" + i, "A100", gpus).inRack("rack-" + i % 2))
            .toList());
  }

  public static NodeSpec node(String name, String model, int gpus) {
    return NodeSpec.of(name, model, gpus, CARD, 64_000, MemorySize.ofGibibytes(256));
  }

  /** Nodes of two GPU models, one without GPUs, and one divided by MIG. */
  public static Fleet mixed() {
    List<NodeSpec> nodes = new ArrayList<>();
    nodes.add(node("a", "A100", 4));
    nodes.add(node("b", "A100", 8).inRack("left"));
    nodes.add(node("c", "T4", 2).inRack("left"));
    nodes.add(node("d", "none", 0));
    nodes.add(
        new NodeSpec(
            "e",
            "A100",
            2,
            CARD,
            64_000,
            MemorySize.ofGibibytes(256),
            "right",
            List.of(0, 1),
            List.of(CUT_1G, CUT_3G, CUT_7G)));
    return new Fleet(nodes);
  }

  /** Sums up the placements, and compares the sums with the nodes and the fleet's figures. */
  public static void check(Fleet fleet) {
    long idle = 0;
    for (int node = 0; node < fleet.nodes().size(); node++) {
      idle += checkNode(fleet, node);
    }
    assertThat(fleet.idlePercent()).isEqualTo(idle);
    assertThat(fleet.groups().stream().mapToInt(StateGroup::size).sum())
        .isEqualTo(fleet.nodes().size());
  }

  private static long checkNode(Fleet fleet, int node) {
    NodeSpec spec = fleet.nodes().get(node);
    List<Placement> on =
        fleet.placements().values().stream().filter(one -> one.node() == node).toList();
    assertThat(fleet.on(node)).containsExactlyInAnyOrderElementsOf(on);
    assertThat(on.stream().mapToInt(one -> one.request().shape().cpuMillis()).sum())
        .isEqualTo(spec.cpuMillis() - fleet.state(node).cpuMillis())
        .isLessThanOrEqualTo(spec.cpuMillis());
    List<Integer> free = new ArrayList<>();
    for (int gpu = 0; gpu < spec.gpus(); gpu++) {
      free.add(checkGpu(spec, gpu, on));
    }
    free.sort(null);
    NodeState state = fleet.state(node);
    for (int slot = 0; slot < free.size(); slot++) {
      assertThat(state.freePercent(slot)).isEqualTo(free.get(slot));
    }
    return free.stream().mapToLong(percent -> percent).sum();
  }

  private static int checkGpu(NodeSpec spec, int gpu, List<Placement> on) {
    int urgent = 0;
    int offline = 0;
    int whole = 0;
    int slices = 0;
    long mebibytes = 0;
    int count = 0;
    for (Placement placement : on) {
      Shape shape = placement.request().shape();
      assertThat(placement.gpus()).hasSize(shape.gpus()).doesNotHaveDuplicates();
      if (placement.gpus().contains(gpu)) {
        boolean isOffline = placement.request().preemptionClass() == PreemptionClass.OFFLINE;
        urgent += isOffline ? 0 : shape.sharePercent();
        offline += isOffline ? shape.sharePercent() : 0;
        whole += shape.isWhole() ? 1 : 0;
        mebibytes += shape.isMig() ? 0 : shape.mebibytesOn((int) (spec.gpuMemory().bytes() >> 20));
        count++;
        if (shape.isMig()) {
          MigCut cut =
              spec.migCuts().stream()
                  .filter(one -> one.profile().equals(shape.migProfile()))
                  .findFirst()
                  .orElseThrow();
          int mask = cut.mask(placement.migStart());
          assertThat(slices & mask).isZero();
          assertThat(8L * shape.memoryMebibytes())
              .isLessThanOrEqualTo(cut.slices() * (spec.gpuMemory().bytes() >> 20));
          slices |= mask;
        }
      }
    }
    assertThat(urgent).isLessThanOrEqualTo(100);
    assertThat(offline).isLessThanOrEqualTo(100);
    assertThat(mebibytes).isLessThanOrEqualTo(spec.gpuMemory().bytes() >> 20);
    assertThat(whole == 0 || count == 1).isTrue();
    int cut = spec.migCuts().isEmpty() ? 0 : Integer.bitCount(slices) * 100 / 8;
    return whole > 0 ? 0 : spec.migCuts().isEmpty() ? 100 - urgent : 100 - cut;
  }
}
