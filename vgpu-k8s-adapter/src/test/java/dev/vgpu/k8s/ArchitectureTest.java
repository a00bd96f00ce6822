package dev.vgpu.k8s;

import static com.tngtech.archunit.lang.syntax.ArchRuleDefinition.noClasses;
import static org.assertj.core.api.Assertions.assertThat;

import com.sun.net.httpserver.HttpServer;
import com.tngtech.archunit.base.DescribedPredicate;
import com.tngtech.archunit.core.domain.JavaClass;
import com.tngtech.archunit.core.domain.JavaClasses;
import com.tngtech.archunit.core.importer.ClassFileImporter;
import com.tngtech.archunit.core.importer.ImportOption;
import dev.vgpu.k8s.http.HttpServers;
import dev.vgpu.k8s.names.Driver;
import dev.vgpu.testing.ModuleRules;
import java.net.InetSocketAddress;
import java.util.Set;
import org.junit.jupiter.api.Test;

/** Which packages may depend on which. */
class ArchitectureTest {
  private static final JavaClasses ADAPTER =
      new ClassFileImporter()
          .withImportOption(ImportOption.Predefined.DO_NOT_INCLUDE_TESTS)
          .importPackages("dev.vgpu.k8s");

  private static final Set<String> ALLOWED =
      Set.of("dev.vgpu", "dev.vgpu.backend", "dev.vgpu.cdi", "dev.vgpu.request", "dev.vgpu.watch");

  @Test
  void theModuleIsLookedAt() {
    assertThat(ADAPTER.contain(Driver.class)).isTrue();
  }

  @Test
  void seesOfVgpuOnlyTheApiAndTheFleet() {
    noClasses()
        .should()
        .dependOnClassesThat(
            DescribedPredicate.describe(
                "are inner parts of vgpu", (JavaClass type) -> isInner(type.getPackageName())))
        .check(ADAPTER);
  }

  private static boolean isInner(String name) {
    return name.startsWith("dev.vgpu")
        && !ALLOWED.contains(name)
        && !name.startsWith("dev.vgpu.k8s")
        && !name.startsWith("dev.vgpu.fleet");
  }

  /** The JDK would read its setting before {@link HttpServers} has made it. */
  @Test
  void httpServersAreOpenedInOnePlace() {
    noClasses()
        .that()
        .doNotBelongToAnyOf(HttpServers.class)
        .should()
        .callMethod(HttpServer.class, "create", InetSocketAddress.class, int.class)
        .orShould()
        .callMethod(HttpServer.class, "create")
        .check(ADAPTER);
  }

  @Test
  void hasNoLargeCycles() {
    ModuleRules.checkCycles(ADAPTER);
  }
}
