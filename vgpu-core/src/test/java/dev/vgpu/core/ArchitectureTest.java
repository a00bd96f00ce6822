package dev.vgpu.core;

import static com.tngtech.archunit.base.DescribedPredicate.describe;
import static com.tngtech.archunit.lang.syntax.ArchRuleDefinition.classes;
import static com.tngtech.archunit.lang.syntax.ArchRuleDefinition.noClasses;
import static com.tngtech.archunit.lang.syntax.ArchRuleDefinition.noMethods;
import static org.assertj.core.api.Assertions.assertThat;

import com.tngtech.archunit.core.domain.JavaAccess;
import com.tngtech.archunit.core.domain.JavaClass;
import com.tngtech.archunit.core.domain.JavaClasses;
import com.tngtech.archunit.core.domain.JavaCodeUnit;
import com.tngtech.archunit.core.domain.JavaMember;
import com.tngtech.archunit.core.domain.JavaModifier;
import com.tngtech.archunit.core.importer.ClassFileImporter;
import com.tngtech.archunit.core.importer.ImportOption;
import com.tngtech.archunit.lang.ArchCondition;
import com.tngtech.archunit.lang.ConditionEvents;
import com.tngtech.archunit.lang.SimpleConditionEvent;
import dev.vgpu.testing.ModuleRules;
import java.io.IOException;
import java.io.PrintWriter;
import java.io.StringWriter;
import java.net.URISyntaxException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import java.util.TreeSet;
import java.util.spi.ToolProvider;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;

/** Rules for the API and the core that {@code module-info} cannot express. */
class ArchitectureTest {
  private static final String[] API = {
    "dev.vgpu", "dev.vgpu.backend", "dev.vgpu.request", "dev.vgpu.spi", "dev.vgpu.watch"
  };
  private static final String[] BELOW_API =
      Stream.concat(Stream.of(API), Stream.of("java..", "org.jspecify.annotations"))
          .toArray(String[]::new);
  private static final String CORE = "dev.vgpu.core..";

  private static final Set<String> CLOCKS =
      Set.of(
          "java.lang.System.nanoTime",
          "java.lang.System.currentTimeMillis",
          "java.time.Instant.now",
          "java.time.LocalDate.now",
          "java.time.LocalDateTime.now",
          "java.time.LocalTime.now",
          "java.time.OffsetDateTime.now",
          "java.time.ZonedDateTime.now",
          "java.time.Clock.system",
          "java.time.Clock.systemUTC",
          "java.time.Clock.systemDefaultZone",
          "java.util.Date.<init>");

  private static final Set<String> NATIVE_LOADERS =
      Set.of(
          "java.lang.System.load",
          "java.lang.System.loadLibrary",
          "java.lang.Runtime.load",
          "java.lang.Runtime.loadLibrary");

  private static final JavaClasses PRODUCT =
      new ClassFileImporter()
          .withImportOption(ImportOption.Predefined.DO_NOT_INCLUDE_TESTS)
          .importPackages("dev.vgpu");

  @Test
  void bothModulesAreLookedAt() {
    assertThat(PRODUCT.contain("dev.vgpu.GpuPool")).isTrue();
    assertThat(PRODUCT.contain("dev.vgpu.core.pool.NodePoolProvider")).isTrue();
    assertThat(PRODUCT.contain(ArchitectureTest.class)).isFalse();
  }

  @Test
  void hasNoLargeCycles() {
    ModuleRules.checkCycles(PRODUCT);
  }

  private static String outermost(JavaClass type) {
    return type.getBaseComponentType().getName().replaceFirst("\\$.*", "");
  }

  @Test
  void noRoomHasMoreThan25Classes() {
    Map<String, Set<String>> rooms = new TreeMap<>();
    for (JavaClass type : PRODUCT) {
      if (type.getPackageName().startsWith("dev.vgpu.core")) {
        rooms.computeIfAbsent(type.getPackageName(), name -> new TreeSet<>()).add(outermost(type));
      }
    }
    assertThat(rooms).hasSizeGreaterThan(10);
    assertThat(rooms.values()).allSatisfy(room -> assertThat(room).hasSizeLessThanOrEqualTo(25));
  }

  @Test
  void apiDependsOnTheJdkAlone() {
    classes()
        .that()
        .resideInAnyPackage(API)
        .should()
        .onlyDependOnClassesThat()
        .resideInAnyPackage(BELOW_API)
        .check(PRODUCT);
  }

  @Test
  void apiSignaturesUseOnlyTypesOfTheJdkAndOfTheApi() {
    classes()
        .that()
        .resideInAnyPackage(API)
        .and(describe("can be seen from outside", ArchitectureTest::isVisible))
        .should(new ShowOnlyKnownTypes())
        .check(PRODUCT);
  }

  private static boolean isVisible(JavaClass type) {
    return type.getModifiers().contains(JavaModifier.PUBLIC)
        && type.getEnclosingClass().map(ArchitectureTest::isVisible).orElse(true);
  }

  private static final class ShowOnlyKnownTypes extends ArchCondition<JavaClass> {
    ShowOnlyKnownTypes() {
      super("show only types of java.. and of the API");
    }

    @Override
    public void check(JavaClass type, ConditionEvents events) {
      Set<JavaClass> above = new HashSet<>(type.getRawInterfaces());
      type.getRawSuperclass().ifPresent(above::add);
      above.forEach(shown -> check(type, type.getName(), shown, events));
      for (JavaMember member : type.getMembers()) {
        Set<JavaModifier> modifiers = member.getModifiers();
        if (modifiers.contains(JavaModifier.PUBLIC) || modifiers.contains(JavaModifier.PROTECTED)) {
          Set<JavaClass> all = new HashSet<>(member.getAllInvolvedRawTypes());
          if (member instanceof JavaCodeUnit unit) {
            all.addAll(unit.getExceptionTypes());
          }
          all.forEach(shown -> check(type, member.getFullName(), shown, events));
        }
      }
    }

    private void check(JavaClass type, String where, JavaClass shown, ConditionEvents events) {
      JavaClass base = shown.getBaseComponentType();
      boolean known =
          base.isPrimitive()
              || base.getPackageName().startsWith("java.")
              || List.of(API).contains(base.getPackageName());
      if (!known) {
        events.add(SimpleConditionEvent.violated(type, where + " shows " + base.getName()));
      }
    }
  }

  @Test
  void coreUsesNothingNative() {
    noClasses()
        .that()
        .resideInAPackage(CORE)
        .should()
        .dependOnClassesThat()
        .resideInAnyPackage("com.sun.jna..", "sun.misc..", "jdk.internal..")
        .orShould()
        .accessTargetWhere(describe("native library is loaded", a -> targets(NATIVE_LOADERS, a)))
        .check(PRODUCT);
    noMethods()
        .that()
        .areDeclaredInClassesThat()
        .resideInAPackage(CORE)
        .should()
        .haveModifier(JavaModifier.NATIVE)
        .check(PRODUCT);
  }

  @Test
  void onlyNanoClockReadsTheClock() {
    Set<String> readers = new HashSet<>();
    for (JavaClass type : PRODUCT) {
      if (type.getAccessesFromSelf().stream().anyMatch(access -> targets(CLOCKS, access))) {
        readers.add(type.getName().replaceFirst("\\$.*", ""));
      }
    }
    assertThat(readers).containsExactly(NanoClock.class.getName());
  }

  private static boolean targets(Set<String> methods, JavaAccess<?> access) {
    return methods.contains(access.getTargetOwner().getName() + "." + access.getTarget().getName());
  }

  @Test
  void typesAreNotNamedForNothing() {
    noClasses()
        .should()
        .haveNameMatching(".*(Impl|Manager|Helper|Utils?|Base)(\\$.*)?")
        .check(PRODUCT);
    noClasses()
        .should()
        .resideInAnyPackage("..util..", "..common..", "..helper..", "..impl..")
        .check(PRODUCT);
  }

  /** Before JDK 24, a virtual thread that waits inside {@code synchronized} pins its carrier. */
  @Test
  void coreHasNoMonitors() throws Exception {
    noMethods().should().haveModifier(JavaModifier.SYNCHRONIZED).check(PRODUCT);
    List<String> arguments = new ArrayList<>(List.of("-c", "-p"));
    Path classes =
        Path.of(NanoClock.class.getProtectionDomain().getCodeSource().getLocation().toURI());
    try (Stream<Path> files = Files.walk(classes)) {
      files
          .map(Path::toString)
          .filter(name -> name.endsWith(".class") && !name.endsWith("-info.class"))
          .forEach(arguments::add);
    }
    String code = disassembled(arguments);
    assertThat(code).contains("class dev.vgpu.core.turn.InProcessGate").contains("invokevirtual");
    assertThat(code.lines().filter(line -> line.contains("monitorenter"))).isEmpty();
  }

  private static String disassembled(List<String> arguments)
      throws IOException, URISyntaxException {
    StringWriter text = new StringWriter();
    PrintWriter out = new PrintWriter(text);
    ToolProvider javap = ToolProvider.findFirst("javap").orElseThrow();
    assertThat(javap.run(out, out, arguments.toArray(String[]::new))).isZero();
    return text.toString();
  }
}
