package dev.vgpu.micrometer;

import static org.assertj.core.api.Assertions.assertThat;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import dev.vgpu.GpuPool;
import dev.vgpu.VirtualGpu;
import io.micrometer.prometheusmetrics.PrometheusConfig;
import io.micrometer.prometheusmetrics.PrometheusMeterRegistry;
import java.io.IOException;
import java.io.InputStream;
import java.util.HashMap;
import java.util.HashSet;
import java.util.Map;
import java.util.Set;
import java.util.TreeSet;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.junit.jupiter.api.Test;

/**
 * What Prometheus reads: the text format, and whether the dashboard's queries find their series.
 */
class ScrapeTest {
  private static final Pattern SAMPLE =
      Pattern.compile(
          "([a-zA-Z_:][a-zA-Z0-9_:]*)(\\{(?:[a-zA-Z_][a-zA-Z0-9_]*=\"(?:[^\"\\\\]|\\\\.)*\",?)*\\})?"
              + " (NaN|[+-]Inf|[+-]?[0-9.]+(?:E[+-]?[0-9]+)?)");

  private static final Pattern LABEL = Pattern.compile("([a-zA-Z_][a-zA-Z0-9_]*)=\"");

  /** In a query: a name that is followed by a selector. */
  private static final Pattern SELECTED = Pattern.compile("([a-z][a-z0-9_]+)\\{([^}]*)\\}");

  /** The series of a scrape: each name with its labels. Fails on a line that is not a series. */
  private static Map<String, Set<String>> parse(String scrape) {
    Map<String, Set<String>> series = new HashMap<>();
    Set<String> typed = new HashSet<>();
    Set<String> seen = new HashSet<>();
    for (String line : scrape.split("\n", -1)) {
      if (line.startsWith("# TYPE ")) {
        assertThat(typed.add(line.split(" ", -1)[2])).as("one type for a name: %s", line).isTrue();
      } else if (!line.isEmpty() && !line.startsWith("# ")) {
        Matcher sample = SAMPLE.matcher(line);
        assertThat(sample.matches()).as("a sample: %s", line).isTrue();
        assertThat(seen.add(sample.group(1) + sample.group(2))).as("once: %s", line).isTrue();
        Set<String> labels = series.computeIfAbsent(sample.group(1), unused -> new HashSet<>());
        if (sample.group(2) != null) {
          LABEL.matcher(sample.group(2)).results().forEach(label -> labels.add(label.group(1)));
        }
      }
    }
    return series;
  }

  static String scrape(GpuPool pool) throws Exception {
    PrometheusMeterRegistry registry = new PrometheusMeterRegistry(PrometheusConfig.DEFAULT);
    try (VgpuMetrics metrics = new VgpuMetrics(pool);
        VirtualGpu gpu =
            VgpuMetrics.timed(pool.acquire(TestGpu.request("embed").build()), registry);
        VirtualGpu other = pool.acquire(TestGpu.request("rank").build())) {
      metrics.bindTo(registry);
      gpu.run(() -> {});
      other.run(() -> {});
      return registry.scrape();
    } finally {
      registry.close();
    }
  }

  @Test
  void aScrapeIsWellFormedAndNamesAreThoseOfTheDocumentation() throws Exception {
    try (GpuPool pool = TestGpu.pool(TestGpu.next())) {
      Map<String, Set<String>> series = parse(scrape(pool));

      assertThat(series)
          .containsKeys(
              "vgpu_gpu_time_seconds_total",
              "vgpu_memory_used_bytes",
              "vgpu_memory_quota_bytes",
              "vgpu_share_entitled_ratio",
              "vgpu_share_held_ratio",
              "vgpu_wait_seconds_bucket",
              "vgpu_allocations_denied_total",
              "hw_status");
      assertThat(series.get("vgpu_memory_used_bytes"))
          .containsExactlyInAnyOrder("name", "gpu", "class", "policy");
    }
  }

  @Test
  void everyQueryOfTheDashboardFindsItsSeriesAndLabels() throws Exception {
    TestGpu device = TestGpu.next();
    TestDriver.CELSIUS.put(device.id(), 50);
    try (GpuPool pool = TestGpu.pool(device)) {
      Map<String, Set<String>> series = parse(scrape(pool));
      Set<String> queries = queries();
      assertThat(queries).isNotEmpty();
      for (String query : queries) {
        Matcher selected = SELECTED.matcher(query);
        int found = 0;
        while (selected.find()) {
          found++;
          assertThat(series).as("series of %s", query).containsKey(selected.group(1));
          Matcher label = Pattern.compile("([a-z_]+)(?:=~|!=|=)").matcher(selected.group(2));
          while (label.find()) {
            assertThat(series.get(selected.group(1))).as(query).contains(label.group(1));
          }
        }
        assertThat(found).as("selectors in %s", query).isPositive();
      }
    }
  }

  private static Set<String> queries() throws IOException {
    try (InputStream in =
        VgpuMetrics.class.getResourceAsStream("/META-INF/vgpu/grafana-dashboard.json")) {
      Set<String> queries = new TreeSet<>();
      for (JsonNode node : new ObjectMapper().readTree(in).findValues("expr")) {
        queries.add(node.asText());
      }
      return queries;
    }
  }
}
