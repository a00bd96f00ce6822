package dev.vgpu.request;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatNullPointerException;

import dev.vgpu.request.Capabilities.Compute;
import dev.vgpu.request.Capabilities.FaultIsolation;
import dev.vgpu.request.Capabilities.Memory;
import dev.vgpu.request.Capabilities.Preemption;
import dev.vgpu.request.Capabilities.Scope;
import org.junit.jupiter.api.Test;

class CapabilitiesTest {
  private static final Capabilities NOTHING = Capabilities.builder().build();

  private static final Capabilities TURNS =
      Capabilities.builder()
          .memory(Memory.SOFT)
          .compute(Compute.TURNS)
          .preemption(Preemption.BETWEEN_CALLS)
          .worksFor(Scope.THIS_JVM)
          .build();

  private static final Capabilities ALL =
      Capabilities.builder()
          .memory(Memory.EXACT)
          .compute(Compute.SPATIAL)
          .preemption(Preemption.INSIDE_KERNEL)
          .faultIsolation(FaultIsolation.ISOLATED)
          .worksFor(Scope.values())
          .build();

  @Test
  void nothingIsMissingForWhatIsThere() {
    assertThat(NOTHING.missingFor(NOTHING)).isEmpty();
    assertThat(TURNS.missingFor(NOTHING)).isEmpty();
    assertThat(TURNS.missingFor(TURNS)).isEmpty();
    assertThat(ALL.missingFor(TURNS)).isEmpty();
    assertThat(ALL.missingFor(ALL)).isEmpty();
  }

  @Test
  void allThatIsMissingIsNamedBesideWhatIsThere() {
    assertThat(TURNS.missingFor(ALL))
        .containsExactly(
            "memory EXACT (has SOFT)",
            "compute SPATIAL (has TURNS)",
            "preemption INSIDE_KERNEL (has BETWEEN_CALLS)",
            "faultIsolation ISOLATED (has NONE)",
            "worksFor PROCESS",
            "worksFor CONTAINER",
            "worksFor VM",
            "worksFor OTHER_USERS");
    Capabilities exact = Capabilities.builder().memory(Memory.EXACT).build();
    assertThat(TURNS.missingFor(exact)).containsExactly("memory EXACT (has SOFT)");
  }

  @Test
  void oneScopeDoesNotStandForAnother() {
    Capabilities process = Capabilities.builder().worksFor(Scope.PROCESS).build();
    Capabilities vm = Capabilities.builder().worksFor(Scope.VM).build();
    assertThat(vm.missingFor(process)).containsExactly("worksFor PROCESS");
    assertThat(process.missingFor(vm)).containsExactly("worksFor VM");
  }

  @Test
  void ofTwoDemandsTheStrongerOneCounts() {
    Capabilities exact = Capabilities.builder().memory(Memory.EXACT).build();
    assertThat(TURNS.and(exact).missingFor(TURNS)).isEmpty();
    assertThat(TURNS.and(exact).missingFor(exact)).isEmpty();
    assertThat(exact.and(TURNS)).isEqualTo(TURNS.and(exact)).isNotEqualTo(TURNS);
    assertThat(NOTHING.and(ALL)).isEqualTo(ALL);
    assertThat(ALL.and(TURNS)).isEqualTo(ALL);
  }

  @Test
  void scopesAddUp() {
    Capabilities both =
        Capabilities.builder().worksFor(Scope.VM).worksFor(Scope.PROCESS, Scope.VM).build();
    assertThat(both.worksFor()).containsExactlyInAnyOrder(Scope.PROCESS, Scope.VM).isUnmodifiable();
    assertThat(both.toString()).endsWith("worksFor=[PROCESS, VM]");
  }

  @Test
  void equalityIsThatOfTheValues() {
    Capabilities same =
        Capabilities.builder()
            .worksFor(Scope.THIS_JVM)
            .preemption(Preemption.BETWEEN_CALLS)
            .compute(Compute.TURNS)
            .memory(Memory.SOFT)
            .build();
    assertThat(same).isEqualTo(TURNS).hasSameHashCodeAs(TURNS).isNotEqualTo(ALL);
    assertThat(TURNS)
        .hasToString(
            "memory=SOFT compute=TURNS preemption=BETWEEN_CALLS faultIsolation=NONE"
                + " worksFor=[THIS_JVM]");
  }

  @Test
  void absentValuesAreRefused() {
    Capabilities.Builder builder = Capabilities.builder();
    assertThatNullPointerException().isThrownBy(() -> builder.memory(null)).withMessage("memory");
    assertThatNullPointerException().isThrownBy(() -> builder.compute(null)).withMessage("compute");
    assertThatNullPointerException()
        .isThrownBy(() -> builder.preemption(null))
        .withMessage("preemption");
    assertThatNullPointerException()
        .isThrownBy(() -> builder.faultIsolation(null))
        .withMessage("faultIsolation");
  }
}
