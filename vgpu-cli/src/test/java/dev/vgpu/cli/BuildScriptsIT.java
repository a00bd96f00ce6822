package dev.vgpu.cli;

import static org.assertj.core.api.Assertions.assertThat;

import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** What {@code ./vgpu} says on a machine that lacks something. */
class BuildScriptsIT {
  private static final Path HOME = Path.of(System.getProperty("vgpu.home", "..")).toAbsolutePath();
  private static final int EX_UNAVAILABLE = 69;

  /** The functions of {@code ./vgpu} without its command. */
  private static final String SCRIPTS =
      """
      ROOT=$PWD JDK=/the/jdk
      eval "$(sed -n '/^say() {/,/^}/p; /^die() {/,/^}/p' vgpu)"
      . build/machine.sh
      . build/maven.sh
      """;

  @TempDir Path directory;
  private int status;

  private String standardError(String command) throws Exception {
    Path err = directory.resolve("err");
    Process process =
        new ProcessBuilder("bash", "-c", SCRIPTS + command, "bash", directory.toString())
            .directory(HOME.toFile())
            .redirectOutput(ProcessBuilder.Redirect.DISCARD)
            .redirectError(err.toFile())
            .start();
    try {
      assertThat(process.waitFor(60, TimeUnit.SECONDS)).isTrue();
      status = process.exitValue();
      return Files.readString(err);
    } finally {
      process.descendants().forEach(ProcessHandle::destroyForcibly);
      process.destroyForcibly();
    }
  }

  private String standardErrorWithLog(String log, String command) throws Exception {
    Files.writeString(directory.resolve("log"), log);
    return standardError("LOG=$1/log; " + command);
  }

  @Test
  void aMachineWithoutProcIsToldHowToMountIt() throws Exception {
    assertThat(standardError("require_proc \"$1\"")).contains("mount -t proc proc /proc");
    assertThat(status).isEqualTo(EX_UNAVAILABLE);
    assertThat(standardError("require_proc")).isEmpty();
    assertThat(status).isZero();
  }

  /** The script's own line stands far above the end of the log. */
  @Test
  void aPackageThatCannotBeInstalledIsToldWithItsReason() throws Exception {
    String log =
        """
        Setting up openjdk-17-jre-headless:amd64 (17.0.17) ...
        the java command requires a mounted proc fs (/proc).
        dpkg: error processing package openjdk-17-jre-headless:amd64 (--configure):
         installed post-installation script subprocess returned error exit status 1
        """
            + "Processing triggers for libc-bin (2.36-9) ...\n".repeat(20)
            + "E: Sub-process /usr/bin/dpkg returned an error code (1)\n";
    assertThat(standardErrorWithLog(log, "apt_failure"))
        .contains("requires a mounted proc fs", "dpkg: error processing package", "E: Sub-process")
        .doesNotContain("triggers");
  }

  private String explanationOf(String error) throws Exception {
    return standardErrorWithLog("[ERROR] " + error + "\n", "explain_failure");
  }

  @Test
  void aFailedDownloadIsExplained() throws Exception {
    String failed =
        "Non-resolvable import POM: Could not transfer artifact a:b:pom:1 from/to central: ";
    assertThat(explanationOf(failed + "(certificate_unknown) PKIX path building failed"))
        .contains("/the/jdk does not trust");
    for (String reason :
        List.of("repo.example: Unknown host", "Connect to [::1] failed: Connection refused")) {
      assertThat(explanationOf(failed + reason))
          .contains("could not reach")
          .doesNotContain("trust");
    }
  }

  @Test
  void aTestThatTellsOfAConnectionIsNoFailedDownload() throws Exception {
    assertThat(explanationOf("  FooTest.bar:12 java.net.ConnectException: Connection refused"))
        .contains("FooTest")
        .doesNotContain("could not reach");
  }
}
