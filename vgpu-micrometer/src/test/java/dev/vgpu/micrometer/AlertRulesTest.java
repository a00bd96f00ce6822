package dev.vgpu.micrometer;

import static java.nio.charset.StandardCharsets.UTF_8;
import static org.assertj.core.api.Assertions.assertThat;

import dev.vgpu.GpuPool;
import java.io.File;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.List;
import java.util.Optional;
import java.util.regex.MatchResult;
import java.util.regex.Pattern;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/**
 * The alerts for Prometheus: they are those of the guide, and their series exist. If promtool (in
 * Debian's package prometheus) is in the directory VGPU_PROMETHEUS or on the path, it checks the
 * rules and the names of the meters. The gate gets it where apt-get has it.
 */
class AlertRulesTest {
  private static final Path RULES = Path.of("src/main/resources/META-INF/vgpu/alerts.yaml");
  private static final Path RULES_TEST = Path.of("src/test/resources/alerts-test.yaml");
  private static final Path GUIDE = Path.of("../site/guides/monitoring.md");
  private static final Pattern EXPRESSION = Pattern.compile("(?m)^ +expr: (.+)$");
  private static final Pattern ROW = Pattern.compile("(?m)^\\| `([^`]+)` \\|");
  private static final Pattern SERIES = Pattern.compile("(?:vgpu|hw)_[a-z_]+");

  @TempDir private Path directory;

  private static List<String> firstGroups(Pattern pattern, String text) {
    return pattern.matcher(text).results().map(found -> found.group(1)).toList();
  }

  private static String scrape() throws Exception {
    TestGpu device = TestGpu.next();
    TestDriver.CELSIUS.put(device.id(), 50);
    try (GpuPool pool = TestGpu.pool(device)) {
      return ScrapeTest.scrape(pool);
    }
  }

  @Test
  void theAlertsAreThoseOfTheGuide() throws IOException {
    String guide = Files.readString(GUIDE);
    String table =
        guide.substring(guide.indexOf("\n## What to watch"), guide.indexOf("\n## Events"));

    assertThat(firstGroups(EXPRESSION, Files.readString(RULES)))
        .isNotEmpty()
        .isEqualTo(firstGroups(ROW, table));
  }

  @Test
  void everySeriesOfAnAlertIsInAScrape() throws Exception {
    String scrape = scrape();

    for (String expression : firstGroups(EXPRESSION, Files.readString(RULES))) {
      List<String> names =
          SERIES.matcher(expression).results().map(MatchResult::group).distinct().toList();
      // "hw_state" is a label, and stands in the scrape as well.
      assertThat(names).as(expression).isNotEmpty().allMatch(scrape::contains);
    }
  }

  @Test
  void promtoolAcceptsTheRulesAndTheNames() throws Exception {
    Optional<Path> found = promtool();
    if (found.isEmpty()) {
      System.err.println("no promtool: the alerts and the names of meters were NOT checked by it");
      return;
    }
    String promtool = found.get().toString();
    Path rules = Files.copy(RULES, directory.resolve("alerts.yaml"));
    Path tests = Files.copy(RULES_TEST, directory.resolve("alerts-test.yaml"));
    Path metrics = Files.writeString(directory.resolve("scrape.txt"), scrape());

    accepts(new ProcessBuilder(promtool, "check", "rules", rules.toString()));
    accepts(new ProcessBuilder(promtool, "test", "rules", tests.toString()));
    accepts(new ProcessBuilder(promtool, "check", "metrics").redirectInput(metrics.toFile()));
  }

  private static Optional<Path> promtool() {
    String given = System.getenv().getOrDefault("VGPU_PROMETHEUS", "");
    String path = (given.isEmpty() ? "" : given + File.pathSeparator) + System.getenv("PATH");
    return Arrays.stream(path.split(File.pathSeparator, -1))
        .map(folder -> Path.of(folder, "promtool"))
        .filter(Files::isExecutable)
        .findFirst();
  }

  private static void accepts(ProcessBuilder command) throws Exception {
    Process process = command.redirectErrorStream(true).start();
    String said = new String(process.getInputStream().readAllBytes(), UTF_8);
    assertThat(process.waitFor()).as("%s: %s", command.command(), said).isZero();
  }
}
