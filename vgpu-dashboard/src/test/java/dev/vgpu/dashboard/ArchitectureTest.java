package dev.vgpu.dashboard;

import static com.tngtech.archunit.lang.syntax.ArchRuleDefinition.classes;
import static com.tngtech.archunit.library.dependencies.SlicesRuleDefinition.slices;
import static org.assertj.core.api.Assertions.assertThat;

import com.tngtech.archunit.core.domain.JavaClasses;
import com.tngtech.archunit.core.importer.ClassFileImporter;
import com.tngtech.archunit.core.importer.ImportOption;
import dev.vgpu.dashboard.http.RequestThreads;
import dev.vgpu.testing.ClassCycles;
import org.junit.jupiter.api.Test;

/** Rules for the dashboard that {@code module-info} cannot express. */
class ArchitectureTest {
  private static final JavaClasses DASHBOARD =
      new ClassFileImporter()
          .withImportOption(ImportOption.Predefined.DO_NOT_INCLUDE_TESTS)
          .importPackages("dev.vgpu.dashboard");

  @Test
  void theModuleIsLookedAt() {
    assertThat(DASHBOARD.contain(Dashboard.class)).isTrue();
    assertThat(DASHBOARD.contain(RequestThreads.class)).isTrue();
    assertThat(DASHBOARD.contain(ArchitectureTest.class)).isFalse();
  }

  @Test
  void packagesHaveNoCycles() {
    slices().matching("dev.vgpu.(**)").should().beFreeOfCycles().check(DASHBOARD);
  }

  @Test
  void classesHaveNoLargeCycles() {
    assertThat(ClassCycles.of(DASHBOARD))
        .allSatisfy(cycle -> assertThat(cycle).hasSizeLessThanOrEqualTo(5));
  }

  /** Any program can embed it: neither the command's nor Spring's classes are needed. */
  @Test
  void dependsOnTheApiTheJdkAndTheLogAlone() {
    classes()
        .should()
        .onlyDependOnClassesThat()
        .resideInAnyPackage(
            "dev.vgpu",
            "dev.vgpu.dashboard..",
            "java..",
            "com.sun.net.httpserver",
            "org.slf4j",
            "org.jspecify.annotations")
        .check(DASHBOARD);
  }
}
