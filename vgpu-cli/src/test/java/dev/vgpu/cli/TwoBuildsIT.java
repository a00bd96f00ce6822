package dev.vgpu.cli;

import static java.nio.charset.StandardCharsets.UTF_8;
import static org.assertj.core.api.Assertions.assertThat;

import java.io.IOException;
import java.io.OutputStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.LocalDateTime;
import java.util.concurrent.TimeUnit;
import java.util.zip.ZipEntry;
import java.util.zip.ZipOutputStream;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** What the gate and {@code ./vgpu release} say of two builds, and of what a release lacks. */
class TwoBuildsIT {
  private static final Path HOME = Path.of(System.getProperty("vgpu.home", "..")).toAbsolutePath();
  private static final long TIMEOUT_SECONDS = 60;
  private static final LocalDateTime TIME = LocalDateTime.of(2026, 11, 20, 0, 0);

  /** As {@code ./vgpu} sources it, with two modules. */
  private static final String SOURCED =
      """
      say() { printf 'vgpu: %s\\n' "$@" >&2; }
      . "$VGPU_HOME/build/two-builds.sh"
      . "$VGPU_HOME/build/release.sh"
      PUBLISHED=vgpu-bom,vgpu-one
      """;

  private static final String OF_THE_OWNER =
      "  <url>u</url>\n  <licenses>\n  <scm>\n  <developers>\n";

  @TempDir Path directory;

  private record Ended(int status, String text) {}

  @BeforeEach
  void makeBuilds() throws IOException {
    for (String build : new String[] {"first", "second"}) {
      for (String module : new String[] {".", "vgpu-bom", "vgpu-one"}) {
        Files.createDirectories(directory.resolve(build).resolve(module));
        pom(build, module, OF_THE_OWNER);
      }
      Files.createDirectories(directory.resolve(build).resolve("vgpu-one/target"));
      jar(build, "code", TIME);
    }
  }

  private void pom(String build, String module, String elements) throws IOException {
    boolean isBom = module.equals("vgpu-bom");
    Files.writeString(
        directory.resolve(build).resolve(module).resolve("pom.xml"),
        "<project>\n  <version>1.0</version>\n  <name>n</name>\n  <description>d</description>\n"
            + (isBom ? "  <packaging>pom</packaging>\n" : "")
            + elements
            + "</project>\n");
  }

  private void jar(String build, String content, LocalDateTime time) throws IOException {
    Path file = directory.resolve(build).resolve("vgpu-one/target/vgpu-one-1.0.jar");
    try (OutputStream out = Files.newOutputStream(file);
        ZipOutputStream zip = new ZipOutputStream(out)) {
      for (String name : new String[] {"dev/vgpu/Same.class", "dev/vgpu/A name.class"}) {
        ZipEntry entry = new ZipEntry(name);
        entry.setTimeLocal(name.contains("Same") ? TIME : time);
        zip.putNextEntry(entry);
        zip.write((name.contains("Same") ? "same" : content).getBytes(UTF_8));
      }
    }
  }

  private Ended run(String script) throws Exception {
    Path output = directory.resolve("output");
    ProcessBuilder builder =
        new ProcessBuilder("bash", "-c", SOURCED + script).directory(directory.toFile());
    builder.environment().put("VGPU_HOME", HOME.toString());
    builder.environment().put("JDK", System.getProperty("java.home"));
    Process process = builder.redirectErrorStream(true).redirectOutput(output.toFile()).start();
    try {
      assertThat(process.waitFor(TIMEOUT_SECONDS, TimeUnit.SECONDS)).isTrue();
      return new Ended(process.exitValue(), Files.readString(output, UTF_8));
    } finally {
      process.destroyForcibly();
    }
  }

  private Ended compare() throws Exception {
    return run("compare_builds first second");
  }

  @Test
  void equalBuildsAreCounted() throws Exception {
    Ended ended = compare();
    assertThat(ended.text).isEqualTo("vgpu: two builds gave the same bytes: 3 files\n");
    assertThat(ended.status).isZero();
  }

  @Test
  void anEntryThatDiffersIsNamed() throws Exception {
    jar("second", "CODE", TIME);
    Ended ended = compare();
    assertThat(ended.status).isEqualTo(1);
    assertThat(ended.text)
        .contains("differ in vgpu-one/target/vgpu-one-1.0.jar:")
        .contains("  entry dev/vgpu/A name.class: ")
        .doesNotContain("Same");
  }

  @Test
  void anEntryOfAnotherTimeIsNamed() throws Exception {
    jar("second", "code", TIME.plusDays(40));
    Ended ended = compare();
    assertThat(ended.status).isEqualTo(1);
    assertThat(ended.text).contains("  entry dev/vgpu/A name.class: ").doesNotContain("Same");
  }

  @Test
  void aPomThatDiffersAndAFileThatIsMissingAreNamed() throws Exception {
    pom("second", "vgpu-one", "");
    Ended differs = compare();
    assertThat(differs.status).isEqualTo(1);
    assertThat(differs.text).contains("differ in vgpu-one/pom.xml:");
    Files.delete(directory.resolve("second/vgpu-one/pom.xml"));
    Ended missing = compare();
    assertThat(missing.status).isEqualTo(1);
    assertThat(missing.text).contains("only the first has vgpu-one/pom.xml");
  }

  @Test
  void theSourcesAreCopiedInAnotherOrder() throws Exception {
    Files.createDirectories(directory.resolve("vgpu-one/target"));
    for (String name : new String[] {"pom.xml", "vgpu-one/a.c", "vgpu-one/b.c"}) {
      Files.writeString(directory.resolve(name), name);
    }
    Files.writeString(directory.resolve("vgpu-one/target/built"), "");
    assertThat(run("copy_sources \"$PWD/a/copy\" && cd a/copy && find . -type f | sort").text)
        .isEqualTo("./pom.xml\n./vgpu-one/a.c\n./vgpu-one/b.c\n");
  }

  @Test
  void whatTheOwnerHasToSetIsSaidOnce() throws Exception {
    pom("first", ".", "  <licenses>\n");
    pom("first", "vgpu-bom", "  <licenses>\n");
    Ended ended = run("check_release first");
    assertThat(ended.status).isEqualTo(1);
    assertThat(ended.text)
        .containsOnlyOnce("<url>")
        .containsOnlyOnce("<scm>")
        .contains("  pom.xml and vgpu-bom/pom.xml have no <url> <scm> <developers>\n")
        .doesNotContain("<licenses>");
  }

  @Test
  void whatOnlyTheBomLacksIsSaid() throws Exception {
    pom("first", "vgpu-bom", OF_THE_OWNER.replace("  <scm>\n", ""));
    Ended ended = run("check_release first");
    assertThat(ended.status).isEqualTo(1);
    assertThat(ended.text)
        .contains("vgpu-bom/pom.xml has no <scm>, which pom.xml has")
        .doesNotContain("<url>");
  }
}
