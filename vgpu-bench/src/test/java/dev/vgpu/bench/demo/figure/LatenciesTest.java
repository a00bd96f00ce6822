package dev.vgpu.bench.demo.figure;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.withinPercentage;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

class LatenciesTest {
  @TempDir private Path directory;

  @Test
  void percentilesAreOfTheAnswered() {
    List<RequestResult> results = new ArrayList<>();
    for (int i = 1; i <= 1_000; i++) {
      results.add(result(i * 1_000_000L, 200));
    }
    Latencies latencies = Latencies.of(results);
    assertThat(latencies.percentileMs(50)).isCloseTo(500, withinPercentage(0.2));
    assertThat(latencies.percentileMs(99)).isCloseTo(990, withinPercentage(0.2));
    assertThat(latencies.maxMs()).isCloseTo(1_000, withinPercentage(0.2));
  }

  @Test
  void failuresAreCountedAndAreNotTimes() {
    Latencies latencies =
        Latencies.of(List.of(result(1_000_000, 200), result(9_000_000, 503), result(9, 0)));
    assertThat(latencies.count()).isEqualTo(1);
    assertThat(latencies.failed()).isEqualTo(2);
    assertThat(latencies.maxMs()).isCloseTo(1, withinPercentage(0.2));
  }

  @Test
  void nothingAnsweredHasNoTime() {
    assertThat(Latencies.of(List.of()).percentileMs(99)).isNaN();
  }

  @Test
  void timeCountsFromTheScheduledArrival() {
    RequestResult sentLate = new RequestResult(0, 5_000_000, 6_000_000, 200, "/embed");
    assertThat(Latencies.of(List.of(sentLate)).maxMs()).isCloseTo(6, withinPercentage(0.2));
    assertThat(Latencies.ofSending(List.of(sentLate)).maxMs()).isCloseTo(5, withinPercentage(0.2));
  }

  @Test
  void resultFileGivesBackWhatWasWritten() throws IOException {
    Path file = directory.resolve("results.txt");
    List<RequestResult> results =
        List.of(result(5, 200), new RequestResult(1, 2, 3, 0, "/models/a b/embed"));
    RequestResult.write(file, results);
    assertThat(RequestResult.read(file)).isEqualTo(results);
    assertThat(Files.readAllLines(file)).hasSize(2);
  }

  private static RequestResult result(long latencyNs, int status) {
    return new RequestResult(0, 0, latencyNs, status, "/embed");
  }
}
