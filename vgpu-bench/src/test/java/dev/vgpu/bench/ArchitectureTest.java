package dev.vgpu.bench;

import static com.tngtech.archunit.library.dependencies.SlicesRuleDefinition.slices;
import static org.assertj.core.api.Assertions.assertThat;

import com.tngtech.archunit.core.domain.JavaClasses;
import com.tngtech.archunit.core.importer.ClassFileImporter;
import com.tngtech.archunit.core.importer.ImportOption;
import dev.vgpu.bench.harness.Node;
import dev.vgpu.testing.ClassCycles;
import org.junit.jupiter.api.Test;

/** Dependency rules of the benchmarks that the compiler does not enforce. */
class ArchitectureTest {
  private static final JavaClasses BENCHMARKS =
      new ClassFileImporter()
          .withImportOption(ImportOption.Predefined.DO_NOT_INCLUDE_TESTS)
          .importPackages("dev.vgpu.bench");

  @Test
  void theModuleIsLookedAt() {
    assertThat(BENCHMARKS.contain(Bench.class)).isTrue();
    assertThat(BENCHMARKS.contain(Node.class)).isTrue();
    assertThat(BENCHMARKS.contain(ArchitectureTest.class)).isFalse();
  }

  @Test
  void packagesHaveNoCycles() {
    slices().matching("dev.vgpu.(**)").should().beFreeOfCycles().check(BENCHMARKS);
  }

  @Test
  void classesHaveNoLargeCycles() {
    assertThat(ClassCycles.of(BENCHMARKS))
        .allSatisfy(cycle -> assertThat(cycle).hasSizeLessThanOrEqualTo(5));
  }
}
