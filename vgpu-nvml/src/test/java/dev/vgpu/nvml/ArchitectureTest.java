package dev.vgpu.nvml;

import static com.tngtech.archunit.lang.syntax.ArchRuleDefinition.noClasses;
import static org.assertj.core.api.Assertions.assertThat;

import com.tngtech.archunit.core.domain.JavaClasses;
import dev.vgpu.nvml.mig.MigDriver;
import dev.vgpu.testing.ModuleRules;
import org.junit.jupiter.api.Test;

/** Rules for NVML that {@code module-info} cannot express. */
class ArchitectureTest {
  private static final JavaClasses NVML = ModuleRules.moduleOf(NvmlProvider.class);

  @Test
  void theModuleIsLookedAt() {
    assertThat(NVML.contain(NvmlProvider.class)).isTrue();
    assertThat(NVML.contain(MigDriver.class)).isTrue();
    assertThat(NVML.contain(ArchitectureTest.class)).isFalse();
  }

  @Test
  void hasNoLargeCycles() {
    ModuleRules.checkCycles(NVML);
  }

  @Test
  void onlyTheBindingUsesJna() {
    noClasses()
        .that()
        .resideOutsideOfPackage("dev.vgpu.nvml.binding")
        .should()
        .dependOnClassesThat()
        .resideInAPackage("com.sun.jna..")
        .check(NVML);
  }

  /** Plans depend only on the caller's input, so they are the same on any machine. */
  @Test
  void plansNeedNoGpu() {
    noClasses()
        .that()
        .resideInAPackage("dev.vgpu.nvml.mig.plan")
        .should()
        .dependOnClassesThat()
        .resideInAnyPackage("dev.vgpu.nvml", "dev.vgpu.nvml.mig", "dev.vgpu.nvml.binding")
        .check(NVML);
  }
}
