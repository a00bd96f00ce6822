package dev.vgpu.samples.inference;

import static com.tngtech.archunit.lang.syntax.ArchRuleDefinition.classes;
import static org.assertj.core.api.Assertions.assertThat;

import com.tngtech.archunit.base.DescribedPredicate;
import com.tngtech.archunit.core.domain.JavaClass;
import com.tngtech.archunit.core.domain.JavaClasses;
import com.tngtech.archunit.core.importer.ClassFileImporter;
import com.tngtech.archunit.core.importer.ImportOption;
import org.junit.jupiter.api.Test;

class ArchitectureTest {
  /** If the sample needs more than the API, the API lacks something. */
  @Test
  void ofVgpuOnlyTheApiIsUsed() {
    JavaClasses sample =
        new ClassFileImporter()
            .withImportOption(ImportOption.Predefined.DO_NOT_INCLUDE_TESTS)
            .importPackages("dev.vgpu.samples");
    assertThat(sample.contain(InferenceServer.class)).isTrue();
    DescribedPredicate<JavaClass> ofVgpu = JavaClass.Predicates.resideInAPackage("dev.vgpu..");
    classes()
        .should()
        .onlyDependOnClassesThat(
            JavaClass.Predicates.resideInAnyPackage(
                    "dev.vgpu", "dev.vgpu.request", "dev.vgpu.watch", "dev.vgpu.samples..")
                .or(DescribedPredicate.not(ofVgpu)))
        .check(sample);
  }
}
