package dev.vgpu.bench.gpucheck;

import static org.assertj.core.api.Assertions.assertThat;

import dev.vgpu.bench.harness.Arguments;
import java.util.Arrays;
import java.util.List;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

class StepNameTest {
  /** Ten minutes for the command, without starting and without ending the last step. */
  private static final int BUDGET_SECONDS = 520;

  private static final int BESIDE_SECONDS = 20;

  private static CheckOptions options(String... arguments) {
    return Arguments.parse(new CheckOptions(), List.of(arguments));
  }

  @Test
  void fileThatIsNotForTheBundleIsWrongUsage() throws Exception {
    assertThat(GpuCheck.run(options("shares"))).isEqualTo(2);
  }

  @ParameterizedTest
  @ValueSource(ints = {1, 2})
  void limitsOfAPartFitIntoOneRun(int part) {
    int sum =
        Arrays.stream(StepName.values())
            .filter(step -> step.part() == part)
            .mapToInt(StepName::limitSeconds)
            .sum();
    assertThat(sum).isPositive().isLessThanOrEqualTo(BUDGET_SECONDS - BESIDE_SECONDS);
  }

  @Test
  void stepsRunPartByPartAndWhatAllDependsOnRunsFirst() {
    List<StepName> steps = List.of(StepName.values());
    assertThat(steps).startsWith(StepName.MACHINE, StepName.PROGRAMS, StepName.TORCH);
    assertThat(steps.stream().map(StepName::part)).isSorted().containsOnly(1, 2);
  }

  @Test
  void partIsChosenByItsNumberAndSingleStepsByTheirNames() {
    CheckOptions first = options("--part", "1");
    assertThat(first.isWanted(StepName.MACHINE)).isTrue();
    assertThat(first.isWanted(StepName.SHARES)).isFalse();
    CheckOptions one = options("--only", "shares");
    assertThat(one.isWanted(StepName.MACHINE)).isFalse();
    assertThat(one.isWanted(StepName.SHARES)).isTrue();
    assertThat(StepName.values()).allMatch(options()::isWanted);
  }

  @Test
  void largerBudgetLetsAStepTakeLongerAndASmallerOneDoesNotShortenIt() {
    double usual = options().limitSeconds(StepName.MIG);
    assertThat(usual).isEqualTo(StepName.MIG.limitSeconds());
    assertThat(options("--budget", "1080").limitSeconds(StepName.MIG)).isEqualTo(2 * usual);
    assertThat(options("--budget", "60").limitSeconds(StepName.MIG)).isEqualTo(usual);
  }
}
