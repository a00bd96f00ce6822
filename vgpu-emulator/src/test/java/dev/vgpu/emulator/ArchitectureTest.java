package dev.vgpu.emulator;

import static org.assertj.core.api.Assertions.assertThat;

import com.tngtech.archunit.core.domain.JavaClasses;
import dev.vgpu.testing.ModuleRules;
import org.junit.jupiter.api.Test;

/** Rules that the compiler does not enforce. */
class ArchitectureTest {
  @Test
  void hasNoLargeCycles() {
    JavaClasses module = ModuleRules.moduleOf(EmulatorDriver.class);

    assertThat(module.contain(EmulatorDriver.class)).isTrue();
    assertThat(module.contain(ArchitectureTest.class)).isFalse();
    ModuleRules.checkCycles(module);
  }
}
