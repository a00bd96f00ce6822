package dev.vgpu.cli;

import static com.tngtech.archunit.lang.syntax.ArchRuleDefinition.noClasses;
import static org.assertj.core.api.Assertions.assertThat;

import com.tngtech.archunit.core.domain.JavaClasses;
import dev.vgpu.cli.run.RunCommand;
import dev.vgpu.testing.ModuleRules;
import org.junit.jupiter.api.Test;

/** Dependency rules of the command that {@code module-info} cannot express. */
class ArchitectureTest {
  private static final JavaClasses COMMAND = ModuleRules.moduleOf(VgpuCommand.class);

  @Test
  void theModuleIsLookedAt() {
    assertThat(COMMAND.contain(VgpuCommand.class)).isTrue();
    assertThat(COMMAND.contain(RunCommand.class)).isTrue();
    assertThat(COMMAND.contain(ArchitectureTest.class)).isFalse();
  }

  @Test
  void hasNoLargeCycles() {
    ModuleRules.checkCycles(COMMAND);
  }

  /** Only the main class knows all commands; no other package depends on it. */
  @Test
  void noRoomUsesTheMainClass() {
    noClasses()
        .that()
        .resideInAPackage("dev.vgpu.cli.*..")
        .should()
        .dependOnClassesThat()
        .resideInAPackage("dev.vgpu.cli")
        .check(COMMAND);
  }
}
