package dev.vgpu.dashboard;

import static com.tngtech.archunit.lang.syntax.ArchRuleDefinition.classes;
import static org.assertj.core.api.Assertions.assertThat;

import com.tngtech.archunit.core.domain.JavaClasses;
import dev.vgpu.dashboard.http.RequestThreads;
import dev.vgpu.testing.ModuleRules;
import org.junit.jupiter.api.Test;

/** Rules for the dashboard that {@code module-info} cannot express. */
class ArchitectureTest {
  private static final JavaClasses DASHBOARD = ModuleRules.moduleOf(Dashboard.class);

  @Test
  void theModuleIsLookedAt() {
    assertThat(DASHBOARD.contain(Dashboard.class)).isTrue();
    assertThat(DASHBOARD.contain(RequestThreads.class)).isTrue();
    assertThat(DASHBOARD.contain(ArchitectureTest.class)).isFalse();
  }

  @Test
  void hasNoLargeCycles() {
    ModuleRules.checkCycles(DASHBOARD);
  }

  /** Any program can embed it: neither the command's nor Spring's classes are needed. */
  @Test
  void dependsOnTheApiTheJdkAndTheLogAlone() {
    classes()
        .should()
        .onlyDependOnClassesThat()
        .resideInAnyPackage(
            "dev.vgpu",
            "dev.vgpu.backend",
            "dev.vgpu.request",
            "dev.vgpu.watch",
            "dev.vgpu.dashboard..",
            "java..",
            "com.sun.net.httpserver",
            "org.slf4j",
            "org.jspecify.annotations")
        .check(DASHBOARD);
  }
}
