package dev.vgpu.simulation;

import static com.tngtech.archunit.lang.syntax.ArchRuleDefinition.classes;
import static com.tngtech.archunit.library.dependencies.SlicesRuleDefinition.slices;
import static org.assertj.core.api.Assertions.assertThat;

import com.tngtech.archunit.core.domain.JavaClasses;
import com.tngtech.archunit.core.importer.ClassFileImporter;
import com.tngtech.archunit.core.importer.ImportOption;
import dev.vgpu.testing.ClassCycles;
import org.junit.jupiter.api.Test;

/** Rules for the simulation that {@code module-info} cannot express. */
class ArchitectureTest {
  private static final JavaClasses SIMULATION =
      new ClassFileImporter()
          .withImportOption(ImportOption.Predefined.DO_NOT_INCLUDE_TESTS)
          .importPackages("dev.vgpu.simulation");

  @Test
  void theModuleIsLookedAt() {
    assertThat(SIMULATION.contain(Simulation.class)).isTrue();
    assertThat(SIMULATION.contain(ArchitectureTest.class)).isFalse();
  }

  @Test
  void hasNoCycles() {
    slices().matching("dev.vgpu.(**)").should().beFreeOfCycles().check(SIMULATION);
    assertThat(ClassCycles.of(SIMULATION))
        .allSatisfy(cycle -> assertThat(cycle).hasSizeLessThanOrEqualTo(5));
  }

  @Test
  void usesTheSchedulerAndAdmissionOfThePoolAlone() {
    classes()
        .should()
        .onlyDependOnClassesThat()
        .resideInAnyPackage(
            "dev.vgpu",
            "dev.vgpu.spi",
            "dev.vgpu.core.admission",
            "dev.vgpu.core.schedule",
            "dev.vgpu.simulation..",
            "java..",
            "org.jspecify.annotations")
        .check(SIMULATION);
  }
}
