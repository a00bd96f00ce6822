package dev.vgpu.simulation;

import static com.tngtech.archunit.lang.syntax.ArchRuleDefinition.classes;
import static org.assertj.core.api.Assertions.assertThat;

import com.tngtech.archunit.core.domain.JavaClasses;
import dev.vgpu.testing.ModuleRules;
import org.junit.jupiter.api.Test;

/** Rules for the simulation that {@code module-info} cannot express. */
class ArchitectureTest {
  private static final JavaClasses SIMULATION = ModuleRules.moduleOf(Simulation.class);

  @Test
  void theModuleIsLookedAt() {
    assertThat(SIMULATION.contain(Simulation.class)).isTrue();
    assertThat(SIMULATION.contain(ArchitectureTest.class)).isFalse();
  }

  @Test
  void hasNoLargeCycles() {
    ModuleRules.checkCycles(SIMULATION);
  }

  @Test
  void usesTheSchedulerAndAdmissionOfThePoolAlone() {
    classes()
        .should()
        .onlyDependOnClassesThat()
        .resideInAnyPackage(
            "dev.vgpu",
            "dev.vgpu.backend",
            "dev.vgpu.request",
            "dev.vgpu.watch",
            "dev.vgpu.spi",
            "dev.vgpu.core.admission",
            "dev.vgpu.core.schedule",
            "dev.vgpu.simulation..",
            "java..",
            "org.jspecify.annotations")
        .check(SIMULATION);
  }
}
