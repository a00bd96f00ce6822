package dev.vgpu.cuda;

import static org.assertj.core.api.Assertions.assertThat;

import dev.vgpu.testing.TestSeed;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.parallel.Execution;
import org.junit.jupiter.api.parallel.ExecutionMode;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/**
 * Runs the C tests of the hook, which need a C compiler and no GPU. Compares the tables and layouts
 * of C and Java.
 */
@Timeout(value = 420, unit = TimeUnit.SECONDS) // compiles, and runs under sanitizers
@Execution(ExecutionMode.CONCURRENT)
class NativeTest extends NativeTests {
  @Test
  void layoutIsTheSameInCAndJavaAndHasNotChanged() throws Exception {
    String fromC = succeed("sh", TESTS.resolve("check.sh").toString(), "layout");
    String forJava = Files.readString(Path.of("target/generated-sources/layout/vgpu_shm.txt"));
    String golden = Files.readString(Path.of("src/test/resources/vgpu_shm-1.golden"));

    assertThat(fromC).isEqualTo(forJava);
    assertThat(fromC).as("a changed row needs a new LAYOUT_MAJOR").isEqualTo(golden);
  }

  @Test
  void exportsAreThoseOfTheList() throws Exception {
    succeed("sh", TESTS.resolve("check.sh").toString(), "exports", LIBRARY.toString());
  }

  @Test
  void listAndDeclarationsAgreeWithCudasHeader() throws Exception {
    succeed("sh", TESTS.resolve("check.sh").toString(), "header");
  }

  @Test
  void whatStandsInForNvmlAgreesWithNvmlsHeader() throws Exception {
    List<String> command =
        new ArrayList<>(List.of("sh", TESTS.resolve("check.sh").toString(), "nvml-header"));
    String named = System.getenv("VGPU_NVML_INCLUDE");
    if (named != null) {
      command.add(named);
    }
    succeed(command.toArray(String[]::new));
  }

  @Test
  void listHasTheFunctionsOfEveryVersionAndClassifiesEach() throws Exception {
    String check = TESTS.resolve("check.sh").toString();
    assertThat(succeed("sh", check, "versions")).contains("MEM_PLUS ", "QUERY ");

    Path known = work.resolve("known");
    Files.writeString(known, "cuMemAlloc_v2 11000\ncuNewInTheNextVersion 14000\n");
    Result lacking = run("sh", check, "versions", known.toString());

    assertThat(lacking.status()).isNotZero();
    assertThat(lacking.output()).contains("cuNewInTheNextVersion").doesNotContain("cuMemAlloc");
  }

  /** Kernels for aarch64 may have them. */
  @Test
  void pagesOf64KibAreEnough() throws Exception {
    runTests(
        "large-pages",
        List.of("attach", "memory", "fork", "express-obeyed", "tenants-memory", "quota-fill"));
  }

  @ParameterizedTest
  @ValueSource(strings = {"asan", "tsan"})
  void sanitizersFindNothing(String kind) throws Exception {
    runTests(
        kind,
        List.of(
            "attach",
            "memory",
            "proc-address",
            "capture",
            "fork",
            "close-descriptors",
            "gate",
            "revoked",
            "seat-killed",
            "seat-ended",
            "messages",
            "resting",
            "express-obeyed",
            "express-announced",
            "express-fork",
            "express-killed",
            "express-garbage",
            "garbage",
            "garbage-grant",
            "quota-churn",
            "quota-fill"));
  }

  @ParameterizedTest
  @ValueSource(strings = {"plain", "asan", "tsan"})
  void whatIsChargedIsWhatTheDriverGave(String kind) throws Exception {
    String script = TESTS.resolve("run_memory.sh").toString();
    String hook = LIBRARY.toAbsolutePath().toString();
    String output = succeed("sh", script, kind, work.toString(), hook);
    assertThat(output).contains("ok   errors").doesNotContain("FAIL", "WARNING: ", "ERROR: ");
  }

  /** The ledger, the measurement, the gate, and what is read in /proc: no process, no time. */
  @ParameterizedTest
  @ValueSource(strings = {"plain", "asan"})
  void eachFileKeepsItsRules(String kind) throws Exception {
    String output = succeed("sh", TESTS.resolve("units.sh").toString(), kind, work.toString());
    assertThat(output)
        .contains("ok   ledger", "ok   measure", "ok   gate", "ok   system")
        .doesNotContain("FAIL");
  }

  @Test
  void kernelsAreStoppedAndResumed() throws Exception {
    String output =
        succeed(
            "sh",
            TESTS.resolve("level2.sh").toString(),
            work.toString(),
            LIBRARY.toAbsolutePath().toString());
    assertThat(output).contains("ok   ends-while-stopped").doesNotContain("FAIL");
  }

  /** A few seconds of fuzzing; run it longer by hand, see CONTRIBUTING.md. */
  @Test
  void randomInputBreaksNoParser() throws Exception {
    String fuzz = TESTS.resolve("fuzz.sh").toString();
    String output = succeed("sh", fuzz, work.toString(), "2", Long.toString(TestSeed.seed()));
    assertThat(output)
        .contains("ok   older form", "ok   fuzz ioctl", "ok   fuzz region", "ok   fuzz socket");
  }
}
