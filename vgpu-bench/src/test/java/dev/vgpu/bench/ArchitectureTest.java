package dev.vgpu.bench;

import static org.assertj.core.api.Assertions.assertThat;

import com.tngtech.archunit.core.domain.JavaClasses;
import dev.vgpu.bench.harness.Node;
import dev.vgpu.testing.ModuleRules;
import org.junit.jupiter.api.Test;

/** Dependency rules of the benchmarks that the compiler does not enforce. */
class ArchitectureTest {
  private static final JavaClasses BENCHMARKS = ModuleRules.moduleOf(Bench.class);

  @Test
  void theModuleIsLookedAt() {
    assertThat(BENCHMARKS.contain(Bench.class)).isTrue();
    assertThat(BENCHMARKS.contain(Node.class)).isTrue();
    assertThat(BENCHMARKS.contain(ArchitectureTest.class)).isFalse();
  }

  @Test
  void hasNoLargeCycles() {
    ModuleRules.checkCycles(BENCHMARKS);
  }
}
