package dev.vgpu.testing;

import static com.tngtech.archunit.library.dependencies.SlicesRuleDefinition.slices;

import com.tngtech.archunit.core.domain.JavaClasses;
import com.tngtech.archunit.core.importer.ClassFileImporter;
import com.tngtech.archunit.core.importer.ImportOption;
import java.util.Set;

/** The rules of structure for every module. */
public final class ModuleRules {
  private static final int MOST_CLASSES_OF_A_CYCLE = 5;

  private ModuleRules() {}

  /**
   * {@return the classes of a module, without its tests}
   *
   * @param type any class of the module's root package
   */
  public static JavaClasses moduleOf(Class<?> type) {
    return new ClassFileImporter()
        .withImportOption(ImportOption.Predefined.DO_NOT_INCLUDE_TESTS)
        .importPackages(type.getPackageName());
  }

  /**
   * Fails if packages depend on each other, or if more than five classes do.
   *
   * @param module the module's classes
   */
  public static void checkCycles(JavaClasses module) {
    slices().matching("dev.(**)").should().beFreeOfCycles().check(module);
    for (Set<String> cycle : ClassCycles.of(module)) {
      if (cycle.size() > MOST_CLASSES_OF_A_CYCLE) {
        throw new AssertionError("too many classes depend on each other: " + cycle);
      }
    }
  }
}
