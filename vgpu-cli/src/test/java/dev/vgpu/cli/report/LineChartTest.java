package dev.vgpu.cli.report;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.offset;

import java.util.List;
import java.util.regex.Pattern;
import org.junit.jupiter.api.Test;

class LineChartTest {
  private static final Pattern HOUR =
      Pattern.compile("<text x=\"([0-9.]+)\"[^>]*>([0-9.]+) h</text>");

  private static List<String> labels(double hours) {
    return HOUR.matcher(new LineChart("chart", hours).svg())
        .results()
        .map(match -> match.group(2))
        .toList();
  }

  @Test
  void theTimeAxisIsLabelledAtRoundHours() {
    assertThat(labels(11.02)).containsExactly("0", "2", "4", "6", "8", "10");
    assertThat(labels(0.3)).containsExactly("0.00", "0.05", "0.10", "0.15", "0.20", "0.25", "0.30");
    assertThat(labels(3000)).containsExactly("0", "500", "1000", "1500", "2000", "2500", "3000");
  }

  @Test
  void aLabelStandsAtItsTime() {
    HOUR.matcher(new LineChart("chart", 11.02).svg())
        .results()
        .forEach(
            match ->
                assertThat(Double.parseDouble(match.group(1)))
                    .isCloseTo(
                        60 + 660 * Double.parseDouble(match.group(2)) / 11.02, offset(0.06)));
  }
}
