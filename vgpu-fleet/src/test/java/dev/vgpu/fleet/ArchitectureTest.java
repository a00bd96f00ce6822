package dev.vgpu.fleet;

import static com.tngtech.archunit.lang.syntax.ArchRuleDefinition.classes;
import static com.tngtech.archunit.lang.syntax.ArchRuleDefinition.noClasses;
import static org.assertj.core.api.Assertions.assertThat;

import com.tngtech.archunit.core.domain.JavaClasses;
import com.tngtech.archunit.core.importer.ClassFileImporter;
import com.tngtech.archunit.core.importer.ImportOption;
import dev.vgpu.fleet.model.Fleet;
import dev.vgpu.testing.ModuleRules;
import org.junit.jupiter.api.Test;

/** Rules for the fleet that {@code module-info} cannot express. */
class ArchitectureTest {
  private static final JavaClasses FLEET =
      new ClassFileImporter()
          .withImportOption(ImportOption.Predefined.DO_NOT_INCLUDE_TESTS)
          .importPackages("dev.vgpu.fleet");

  @Test
  void theModuleIsLookedAt() {
    assertThat(FLEET.contain(Fleet.class)).isTrue();
    assertThat(FLEET.contain(ArchitectureTest.class)).isFalse();
  }

  @Test
  void hasNoLargeCycles() {
    ModuleRules.checkCycles(FLEET);
  }

  @Test
  void dependsOnTheJdkAndTheApiAlone() {
    classes()
        .should()
        .onlyDependOnClassesThat()
        .resideInAnyPackage(
            "dev.vgpu.request",
            "dev.vgpu.watch",
            "dev.vgpu.fleet..",
            "java..",
            "org.jspecify.annotations")
        .check(FLEET);
  }

  @Test
  void typesAreNotNamedForNothing() {
    noClasses()
        .should()
        .haveNameMatching(".*(Impl|Manager|Helper|Utils?|Base|Kube|Pod).*")
        .check(FLEET);
  }
}
