package dev.vgpu.cli.report;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ObjectNode;
import dev.vgpu.cli.console.UserException;
import dev.vgpu.cli.simulation.SimulateCommand;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

class ReportFileTest {
  @TempDir private Path directory;

  @Test
  void preparingLeavesNothingBehind() throws Exception {
    ReportFile.prepare(directory.resolve("new/report.html"));
    assertThat(directory.resolve("new")).isEmptyDirectory();
  }

  @Test
  void writingLeavesTheReportAlone() throws Exception {
    Path path = Files.writeString(directory.resolve("report.html"), "old");
    ReportFile file = ReportFile.prepare(path);
    assertThat(path).hasContent("old");
    file.write("new");
    assertThat(path).hasContent("new");
    assertThat(directory).isDirectoryContaining(path::equals);
    assertThat(directory.toFile().list()).hasSize(1);
  }

  @Test
  void directoryIsRefused() {
    assertThatThrownBy(() -> ReportFile.prepare(directory))
        .isInstanceOf(UserException.class)
        .hasMessageContaining("it is not a file");
  }

  @Test
  void deviceIsNotReplaced() {
    assertThatThrownBy(() -> ReportFile.prepare(Path.of("/dev/null")))
        .isInstanceOf(UserException.class);
    assertThat(Path.of("/dev/null")).exists();
  }

  @Test
  void fileInPlaceOfTheDirectoryIsRefused() throws IOException {
    Path file = Files.writeString(directory.resolve("file"), "");
    assertThatThrownBy(() -> ReportFile.prepare(file.resolve("report.html")))
        .isInstanceOf(UserException.class)
        .hasMessageContaining("cannot be written");
  }

  @Test
  void directoryWithoutPermissionIsRefused() {
    // Not even root can create a file there.
    assertThatThrownBy(() -> ReportFile.prepare(Path.of("/proc/vgpu-report.html")))
        .isInstanceOf(UserException.class)
        .hasMessageContaining("--report FILE");
  }

  @Test
  void failedMoveLeavesTheOldOneAndNoRest() throws Exception {
    Path path = directory.resolve("report.html");
    ReportFile file = ReportFile.prepare(path);
    Files.createDirectories(path.resolve("in the way"));
    assertThatThrownBy(() -> file.write("new")).isInstanceOf(UserException.class);
    assertThat(directory.toFile().list()).containsExactly("report.html");
  }

  @Test
  void reportNeedsNothingElse() {
    ObjectNode data = new ObjectMapper().createObjectNode().put("text", "</script><!-- & \u2028");
    String html = HtmlReport.of(SimulateCommand.class, "simulation", data);
    assertThat(html.contains("{{")).isFalse();
    assertThat(html.contains("{\"text\":\"\\u003c/script\\u003e\\u003c!-- \\u0026 \u2028\"}"))
        .isTrue();
    for (String outside : List.of("<script src", "<link", "<img", "@import", "url(")) {
      String own = html.substring(0, html.indexOf("Licensed to the Apache"));
      assertThat(own.contains(outside)).as(outside).isFalse();
    }
    // Four scripts: the data, the chart library, the common code, and the report's own.
    assertThat(html.split("</script>", -1)).hasSize(5);
  }

  @Test
  void scriptCannotEndItsElement() {
    assertThat(HtmlReport.script("a='</script>'; b='<!--'"))
        .isEqualTo("a='<\\/script>'; b='<\\!--'");
  }
}
