package dev.vgpu.cli;

import static com.tngtech.archunit.lang.syntax.ArchRuleDefinition.noClasses;
import static com.tngtech.archunit.library.dependencies.SlicesRuleDefinition.slices;
import static org.assertj.core.api.Assertions.assertThat;

import com.tngtech.archunit.core.domain.JavaClasses;
import com.tngtech.archunit.core.importer.ClassFileImporter;
import com.tngtech.archunit.core.importer.ImportOption;
import dev.vgpu.cli.run.RunCommand;
import dev.vgpu.testing.ClassCycles;
import org.junit.jupiter.api.Test;

/** Dependency rules of the command that {@code module-info} cannot express. */
class ArchitectureTest {
  private static final JavaClasses COMMAND =
      new ClassFileImporter()
          .withImportOption(ImportOption.Predefined.DO_NOT_INCLUDE_TESTS)
          .importPackages("dev.vgpu.cli");

  @Test
  void theModuleIsLookedAt() {
    assertThat(COMMAND.contain(VgpuCommand.class)).isTrue();
    assertThat(COMMAND.contain(RunCommand.class)).isTrue();
    assertThat(COMMAND.contain(ArchitectureTest.class)).isFalse();
  }

  @Test
  void packagesHaveNoCycles() {
    slices().matching("dev.vgpu.(**)").should().beFreeOfCycles().check(COMMAND);
  }

  @Test
  void classesHaveNoLargeCycles() {
    assertThat(ClassCycles.of(COMMAND))
        .allSatisfy(cycle -> assertThat(cycle).hasSizeLessThanOrEqualTo(5));
  }

  /** They have a single package each, and no test of this kind of their own. */
  @Test
  void smallModulesHaveNoLargeCyclesOfClasses() {
    JavaClasses small =
        new ClassFileImporter()
            .withImportOption(ImportOption.Predefined.DO_NOT_INCLUDE_TESTS)
            .importPackages("dev.vgpu.emulator", "dev.vgpu.kmod", "dev.vgpu.micrometer");
    assertThat(small).hasSizeGreaterThan(20);
    assertThat(ClassCycles.of(small))
        .allSatisfy(cycle -> assertThat(cycle).hasSizeLessThanOrEqualTo(5));
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
