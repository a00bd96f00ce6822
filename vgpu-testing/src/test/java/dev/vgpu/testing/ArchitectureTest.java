package dev.vgpu.testing;

import static org.assertj.core.api.Assertions.assertThat;

import com.tngtech.archunit.core.domain.JavaClasses;
import org.junit.jupiter.api.Test;

/** Rules that the compiler does not enforce. */
class ArchitectureTest {
  @Test
  void hasNoLargeCycles() {
    JavaClasses module = ModuleRules.moduleOf(ClassCycles.class);

    assertThat(module.contain(ClassCycles.class)).isTrue();
    assertThat(module.contain(ArchitectureTest.class)).isFalse();
    ModuleRules.checkCycles(module);
  }
}
