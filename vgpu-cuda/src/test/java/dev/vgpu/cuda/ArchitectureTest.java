package dev.vgpu.cuda;

import static com.tngtech.archunit.library.dependencies.SlicesRuleDefinition.slices;
import static org.assertj.core.api.Assertions.assertThat;

import com.tngtech.archunit.core.domain.JavaClasses;
import com.tngtech.archunit.core.importer.ClassFileImporter;
import com.tngtech.archunit.core.importer.ImportOption;
import dev.vgpu.cuda.hook.HookEnforcement;
import dev.vgpu.cuda.pages.SharedPage;
import dev.vgpu.testing.ClassCycles;
import org.junit.jupiter.api.Test;

/** Rules for the backends that {@code module-info} cannot express. */
class ArchitectureTest {
  private static final JavaClasses CUDA =
      new ClassFileImporter()
          .withImportOption(ImportOption.Predefined.DO_NOT_INCLUDE_TESTS)
          .importPackages("dev.vgpu.cuda");

  @Test
  void theModuleIsLookedAt() {
    assertThat(CUDA.contain(HookEnforcement.class)).isTrue();
    assertThat(CUDA.contain(SharedPage.class)).isTrue();
    assertThat(CUDA.contain(ArchitectureTest.class)).isFalse();
  }

  @Test
  void packagesHaveNoCycles() {
    slices().matching("dev.vgpu.(**)").should().beFreeOfCycles().check(CUDA);
  }

  /** A lease under the hook, its slots and its connection form one state machine in 13 classes. */
  @Test
  void classesHaveNoLargeCycles() {
    assertThat(ClassCycles.of(CUDA))
        .allSatisfy(cycle -> assertThat(cycle).hasSizeLessThanOrEqualTo(13))
        .filteredOn(cycle -> !cycle.contains(HookEnforcement.class.getName()))
        .allSatisfy(cycle -> assertThat(cycle).hasSizeLessThanOrEqualTo(5));
  }
}
