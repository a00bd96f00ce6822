package dev.vgpu.cuda;

import static org.assertj.core.api.Assertions.assertThat;

import com.tngtech.archunit.core.domain.JavaClasses;
import dev.vgpu.cuda.hook.HookEnforcement;
import dev.vgpu.cuda.pages.SharedPage;
import dev.vgpu.testing.ModuleRules;
import org.junit.jupiter.api.Test;

/** Rules for the backends that {@code module-info} cannot express. */
class ArchitectureTest {
  private static final JavaClasses CUDA = ModuleRules.moduleOf(CudaHookBackend.class);

  @Test
  void theModuleIsLookedAt() {
    assertThat(CUDA.contain(HookEnforcement.class)).isTrue();
    assertThat(CUDA.contain(SharedPage.class)).isTrue();
    assertThat(CUDA.contain(ArchitectureTest.class)).isFalse();
  }

  @Test
  void hasNoLargeCycles() {
    ModuleRules.checkCycles(CUDA);
  }
}
