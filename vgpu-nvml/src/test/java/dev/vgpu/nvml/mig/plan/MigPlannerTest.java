package dev.vgpu.nvml.mig.plan;

import static org.assertj.core.api.Assertions.assertThat;

import dev.vgpu.request.GpuId;
import dev.vgpu.request.MemorySize;
import java.util.ArrayDeque;
import java.util.Deque;
import java.util.HashSet;
import java.util.List;
import java.util.Optional;
import java.util.Set;
import org.junit.jupiter.api.Test;

class MigPlannerTest {
  private static final MigGeometry H100 = MigGeometry.ofSeven(MemorySize.ofGibibytes(80), 132);
  private static final MigGeometry A30 = MigGeometry.ofFour(MemorySize.ofGibibytes(24), 56);

  private static MigProfile profile(String name) {
    return H100.profile(name).orElseThrow();
  }

  private static int startOnEmpty(String name) {
    return MigPlanner.start(gpu(0), profile(name)).orElseThrow();
  }

  @Test
  void profilesHaveTheNamesThatPeopleKnow() {
    assertThat(H100.profiles())
        .extracting(MigProfile::name)
        .containsExactly(
            "1g.10gb", "1g.10gb+me", "1g.20gb", "2g.20gb", "3g.40gb", "4g.40gb", "7g.80gb");
    assertThat(profile("1g").memorySlices()).isEqualTo(1);
    assertThat(H100.profile("5g")).isEmpty();
  }

  /** As observed in public logs of real GPUs. */
  @Test
  void instancesHaveTheMultiprocessorsThatWereSeen() {
    assertThat(H100.profiles())
        .extracting(MigProfile::multiprocessors)
        .containsExactly(16, 16, 26, 32, 60, 64, 132);
    assertThat(MigGeometry.ofSeven(MemorySize.ofGibibytes(40), 108).profiles())
        .extracting(MigProfile::multiprocessors)
        .containsExactly(14, 14, 14, 28, 42, 56, 98);
    assertThat(A30.profiles()).extracting(MigProfile::multiprocessors).contains(14, 28, 56);
  }

  /** The number that an independent enumeration by the rules of NVIDIA's MIG user guide gives. */
  @Test
  void thereAreAsManyValidStatesAsTheEnumerationFound() {
    assertThat(states(H100)).isEqualTo(723);
  }

  private static int states(MigGeometry geometry) {
    Set<Set<List<Integer>>> seen = new HashSet<>();
    Deque<Set<List<Integer>>> open = new ArrayDeque<>(List.of(Set.of()));
    seen.add(Set.of());
    while (!open.isEmpty()) {
      Set<List<Integer>> state = open.pop();
      MigOccupancy taken = MigOccupancy.NONE;
      for (List<Integer> placed : state) {
        taken = taken.with(geometry.profile(placed.get(0)).orElseThrow(), placed.get(1));
      }
      for (MigProfile profile : geometry.profiles()) {
        if (profile.hasMedia()) {
          continue;
        }
        for (int start : geometry.legalStarts(taken, profile)) {
          Set<List<Integer>> next = new HashSet<>(state);
          next.add(List.of(profile.id(), start));
          if (seen.add(next)) {
            open.add(next);
          }
        }
      }
    }
    return seen.size();
  }

  @Test
  void aLoneInstanceGoesWhereMostRemainsPossible() {
    assertThat(startOnEmpty("3g")).isEqualTo(4);
    assertThat(startOnEmpty("2g")).isEqualTo(2);
    assertThat(startOnEmpty("1g.20gb")).isEqualTo(6);
    MigGpu a30 = new MigGpu(new GpuId("GPU-0"), A30, List.of());
    assertThat(MigPlanner.start(a30, A30.profile("1g").orElseThrow())).isPresent();
  }

  @Test
  void theSmallestProfileThatHasEnoughIsTaken() {
    assertThat(H100.smallest(MemorySize.ofGibibytes(10), 0)).contains(profile("1g.10gb"));
    assertThat(H100.smallest(MemorySize.ofGibibytes(11), 0)).contains(profile("1g.20gb"));
    assertThat(H100.smallest(MemorySize.ofGibibytes(11), 20)).contains(profile("2g.20gb"));
    assertThat(H100.smallest(MemorySize.ofGibibytes(1), 50)).contains(profile("4g.40gb"));
    assertThat(H100.smallest(MemorySize.ofGibibytes(81), 0)).isEmpty();
  }

  private static MigInstance placed(int id, String name, int start, boolean movable) {
    MigProfile p = profile(name);
    return new MigInstance(id, p.id(), start, p.memorySlices(), p.computeSlices(), "x", movable);
  }

  private static MigGpu gpu(int number, MigInstance... instances) {
    return new MigGpu(new GpuId("GPU-" + number), H100, List.of(instances));
  }

  @Test
  void aGpuThatIsCutAlreadyIsUsedBeforeAWholeOne() {
    List<MigGpu> gpus = List.of(gpu(0), gpu(1, placed(1, "3g", 4, false)));
    MigPlan plan = MigPlanner.place(gpus, any -> Optional.of(profile("4g"))).orElseThrow();
    assertThat(plan.chosen().gpu()).isEqualTo(new GpuId("GPU-1"));
    assertThat(plan.candidates()).hasSize(2);
    assertThat(plan.candidates().get(1).remains()).contains("3g.40gb 1");
    assertThat(plan.candidates().get(1).remains()).contains("7g.80gb 0");
  }

  @Test
  void roomIsMadeByMovingTheFewest() {
    MigGpu full = gpu(0, placed(1, "1g", 0, true), placed(2, "1g", 6, false));
    List<MigGpu> gpus = List.of(full);
    assertThat(MigPlanner.place(gpus, any -> Optional.of(profile("4g")))).isEmpty();
    MigPlan plan = MigPlanner.makeRoom(gpus, any -> Optional.of(profile("4g"))).orElseThrow();
    assertThat(plan.chosen().start()).isZero();
    assertThat(plan.moves())
        .singleElement()
        .satisfies(
            move -> {
              assertThat(move.instance().id()).isEqualTo(1);
              assertThat(move.start()).isIn(4, 5);
            });
  }

  @Test
  void whatMayNotBeMovedStays() {
    MigGpu held = gpu(0, placed(1, "1g", 0, false));
    assertThat(MigPlanner.makeRoom(List.of(held), any -> Optional.of(profile("4g")))).isEmpty();
  }

  private static MigPlan room(String name, MigGpu... gpus) {
    return MigPlanner.makeRoom(List.of(gpus), any -> Optional.of(profile(name))).orElseThrow();
  }

  @Test
  void nothingIsMovedWhereTheRequestFits() {
    MigGpu some = gpu(0, placed(1, "1g", 6, true));
    MigPlan plan = room("4g", some);
    assertThat(plan.moves()).isEmpty();
    assertThat(plan.chosen().gpu()).isEqualTo(new GpuId("GPU-0"));
    assertThat(plan.candidates().get(0).loss())
        .isEqualTo(plan.chosen().optionsBefore() - plan.chosen().optionsAfter())
        .isPositive();
  }

  @Test
  void ofAsManyMovesThoseOfTheSmallerInstances() {
    MigGpu small = gpu(0, placed(1, "1g", 0, true), placed(2, "3g", 4, false));
    MigGpu large = gpu(1, placed(3, "2g", 0, true), placed(4, "1g", 6, false));
    for (MigPlan plan : List.of(room("4g", small, large), room("4g", large, small))) {
      assertThat(plan.moves()).singleElement().extracting(m -> m.instance().id()).isEqualTo(1);
      assertThat(plan.moves().get(0).from()).isEqualTo(new GpuId("GPU-0"));
      assertThat(plan.moves().get(0).to()).isEqualTo(new GpuId("GPU-1"));
      assertThat(plan.chosen().gpu()).isEqualTo(new GpuId("GPU-0"));
    }
  }

  @Test
  void oneMoveOfALargerInstanceBeforeTwoOfSmallerOnes() {
    MigGpu two = gpu(0, placed(1, "1g", 0, true), placed(2, "1g", 1, true));
    MigGpu one = gpu(1, placed(3, "2g", 0, true));
    for (MigPlan plan : List.of(room("4g", two, one), room("4g", one, two))) {
      assertThat(plan.moves()).singleElement().extracting(m -> m.instance().id()).isEqualTo(3);
    }
  }

  /** A whole GPU is made free by moving all that is on it, the hardest to place first. */
  @Test
  void severalAreMovedWhereOneIsNotEnough() {
    MigGpu used = gpu(0, placed(1, "1g", 6, true), placed(2, "3g", 0, true));
    MigGpu beside = gpu(1, placed(3, "1g", 0, false));
    MigPlan plan = room("7g", used, beside);
    assertThat(plan.moves()).extracting(m -> m.instance().id()).containsExactly(2, 1);
    assertThat(plan.moves()).extracting(MigPlan.Move::to).containsOnly(new GpuId("GPU-1"));
    assertThat(plan.chosen().start()).isZero();
  }

  @Test
  void noRoomIsMadeOnAGpuWithoutTheProfile() {
    MigGpu used = gpu(0, placed(1, "1g", 0, true));
    assertThat(MigPlanner.makeRoom(List.of(used), any -> Optional.empty())).isEmpty();
  }

  @Test
  void whatRemainsNamesNoMediaEngines() {
    MigPlan plan =
        MigPlanner.place(List.of(gpu(0)), any -> Optional.of(profile("7g"))).orElseThrow();
    assertThat(plan.chosen().remains())
        .isEqualTo("1g.10gb 0, 1g.20gb 0, 2g.20gb 0, 3g.40gb 0, 4g.40gb 0, 7g.80gb 0");
  }

  @Test
  void instancesTakeTheirSlicesAndTheMediaEngines() {
    MigGpu gpu = gpu(0, placed(1, "1g.10gb+me", 1, false), placed(2, "3g", 4, false));
    assertThat(gpu.occupancy()).isEqualTo(new MigOccupancy(0xf2, 4, true));
    assertThat(gpu(0).occupancy()).isEqualTo(MigOccupancy.NONE);
  }
}
