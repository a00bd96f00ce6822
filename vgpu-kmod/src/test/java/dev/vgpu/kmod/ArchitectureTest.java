package dev.vgpu.kmod;

import static org.assertj.core.api.Assertions.assertThat;

import com.tngtech.archunit.core.domain.JavaClasses;
import dev.vgpu.testing.ModuleRules;
import org.junit.jupiter.api.Test;

/** Rules that the compiler does not enforce. */
class ArchitectureTest {
  @Test
  void hasNoLargeCycles() {
    JavaClasses module = ModuleRules.moduleOf(KmodBackend.class);

    assertThat(module.contain(KmodBackend.class)).isTrue();
    assertThat(module.contain(ArchitectureTest.class)).isFalse();
    ModuleRules.checkCycles(module);
  }
}
