package dev.vgpu.nvml.mig.plan;

import static org.assertj.core.api.Assertions.assertThat;

import dev.vgpu.request.GpuId;
import dev.vgpu.request.MemorySize;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Random;
import net.jqwik.api.ForAll;
import net.jqwik.api.Property;
import net.jqwik.api.Tag;
import net.jqwik.api.constraints.IntRange;
import net.jqwik.api.constraints.Size;

@Tag("property")
class MigPlannerProperties {
  private static final MigGeometry SEVEN = MigGeometry.ofSeven(MemorySize.ofGibibytes(80), 132);
  private static final MigGeometry FOUR = MigGeometry.ofFour(MemorySize.ofGibibytes(24), 56);

  /** Requests and departures: nothing ever overlaps or is over-committed. */
  @Property(tries = 1_000)
  void noPlacementIsEverIllegal(
      @ForAll boolean seven, @ForAll @Size(max = 40) List<@IntRange(max = 99) Integer> steps) {
    MigGeometry geometry = seven ? SEVEN : FOUR;
    List<MigInstance> instances = new ArrayList<>();
    int id = 0;
    for (int step : steps) {
      if (step >= 60 && !instances.isEmpty()) {
        instances.remove(step % instances.size());
        continue;
      }
      MigProfile profile = geometry.profiles().get(step % geometry.profiles().size());
      MigGpu gpu = new MigGpu(new GpuId("GPU-x"), geometry, instances);
      Optional<MigPlan> plan = MigPlanner.place(List.of(gpu), any -> Optional.of(profile));
      boolean fits = !geometry.legalStarts(gpu.occupancy(), profile).isEmpty();
      assertThat(plan.isPresent()).isEqualTo(fits);
      if (plan.isPresent()) {
        instances.add(instance(id++, profile, plan.get().chosen().start(), false));
      }
      checkLegal(geometry, instances);
    }
  }

  /** A place that is asked for is given if it is free, and no other one ever; moves free it. */
  @Property(tries = 500)
  void aPlaceAskedForIsGivenAndNoOther(@ForAll @IntRange(max = 1_000_000) int seed) {
    Random random = new Random(seed);
    List<MigInstance> instances = new ArrayList<>();
    for (int i = 0; i < random.nextInt(6); i++) {
      MigProfile profile = SEVEN.profiles().get(random.nextInt(SEVEN.profiles().size()));
      MigGpu gpu = new MigGpu(new GpuId("GPU-x"), SEVEN, instances);
      List<Integer> starts = SEVEN.legalStarts(gpu.occupancy(), profile);
      if (!starts.isEmpty()) {
        int start = starts.get(random.nextInt(starts.size()));
        instances.add(instance(i, profile, start, random.nextBoolean()));
      }
    }
    List<MigGpu> gpus = List.of(new MigGpu(new GpuId("GPU-x"), SEVEN, instances));
    MigProfile profile = SEVEN.profiles().get(random.nextInt(SEVEN.profiles().size()));
    int start = profile.starts().get(random.nextInt(profile.starts().size()));
    Optional<MigProfile> there = profile.at(start);
    Optional<MigPlan> plan = MigPlanner.place(gpus, any -> there);
    assertThat(plan.isPresent()).isEqualTo(SEVEN.isLegal(gpus.get(0).occupancy(), profile, start));
    plan.ifPresent(found -> assertThat(found.candidates()).hasSize(1));
    Optional<MigPlan> room = MigPlanner.makeRoom(gpus, any -> there);
    assertThat(room.isPresent() || plan.isEmpty()).isTrue();
    for (MigPlan each : List.of(plan, room).stream().flatMap(Optional::stream).toList()) {
      assertThat(each.chosen().profile().id()).isEqualTo(profile.id());
      assertThat(each.chosen().start()).isEqualTo(start);
      checkMoves(gpus, profile, each);
    }
  }

  private static MigInstance instance(int id, MigProfile profile, int start, boolean movable) {
    return new MigInstance(
        id, profile.id(), start, profile.memorySlices(), profile.computeSlices(), "", movable);
  }

  /** By the rules of NVIDIA's MIG user guide, independent of the code under test. */
  private static void checkLegal(MigGeometry geometry, List<MigInstance> instances) {
    Map<Integer, Integer> counts = new HashMap<>();
    boolean[] taken = new boolean[geometry.memorySlices()];
    int compute = 0;
    int media = 0;
    for (MigInstance instance : instances) {
      MigProfile profile = geometry.profile(instance.profileId()).orElseThrow();
      assertThat(profile.starts()).contains(instance.start());
      for (int slice = 0; slice < instance.memorySlices(); slice++) {
        assertThat(taken[instance.start() + slice]).isFalse();
        taken[instance.start() + slice] = true;
      }
      compute += instance.computeSlices();
      media += profile.hasMedia() ? 1 : 0;
      assertThat(counts.merge(profile.id(), 1, Integer::sum)).isLessThanOrEqualTo(profile.most());
    }
    assertThat(compute).isLessThanOrEqualTo(geometry.computeSlices());
    assertThat(media).isLessThanOrEqualTo(1);
  }

  /** After the moves, every instance is at a legal place, and the request fits. */
  @Property(tries = 500)
  void roomIsMadeWithoutLosingAnything(@ForAll @IntRange(max = 1_000_000) int seed) {
    Random random = new Random(seed);
    List<MigGpu> gpus = new ArrayList<>();
    for (int i = 0; i < 2; i++) {
      List<MigInstance> instances = new ArrayList<>();
      for (int j = 0; j < 6; j++) {
        MigProfile profile = SEVEN.profiles().get(random.nextInt(SEVEN.profiles().size()));
        MigGpu gpu = new MigGpu(new GpuId("GPU-" + i), SEVEN, instances);
        List<Integer> starts = SEVEN.legalStarts(gpu.occupancy(), profile);
        if (!starts.isEmpty() && profile.computeSlices() < 4) {
          int start = starts.get(random.nextInt(starts.size()));
          instances.add(instance(10 * i + j, profile, start, random.nextInt(3) > 0));
        }
      }
      gpus.add(new MigGpu(new GpuId("GPU-" + i), SEVEN, instances));
    }
    MigProfile wanted = SEVEN.profiles().get(random.nextInt(SEVEN.profiles().size()));
    Optional<MigPlan> plan = MigPlanner.makeRoom(gpus, any -> Optional.of(wanted));
    plan.ifPresent(found -> checkMoves(gpus, wanted, found));
  }

  private static void checkMoves(List<MigGpu> gpus, MigProfile wanted, MigPlan plan) {
    Map<GpuId, List<MigInstance>> after = new HashMap<>();
    gpus.forEach(gpu -> after.put(gpu.id(), new ArrayList<>(gpu.instances())));
    for (MigPlan.Move move : plan.moves()) {
      assertThat(move.instance().movable()).isTrue();
      assertThat(after.get(move.from()).remove(move.instance())).isTrue();
    }
    for (MigPlan.Move move : plan.moves()) {
      MigProfile profile = SEVEN.profile(move.instance().profileId()).orElseThrow();
      after.get(move.to()).add(instance(move.instance().id(), profile, move.start(), true));
    }
    after.get(plan.chosen().gpu()).add(instance(99, wanted, plan.chosen().start(), false));
    after.values().forEach(instances -> checkLegal(SEVEN, instances));
  }
}
