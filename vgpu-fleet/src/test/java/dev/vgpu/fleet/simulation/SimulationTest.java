package dev.vgpu.fleet.simulation;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.vgpu.fleet.placement.Policies;
import dev.vgpu.request.PreemptionClass;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.concurrent.atomic.AtomicLong;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

class SimulationTest {
  private final AtomicLong ticks = new AtomicLong();

  @TempDir private Path directory;

  private Trace read(String text) throws IOException {
    return FleetFile.read(Files.writeString(directory.resolve("fleet.csv"), text));
  }

  @Test
  void jobsWaitAndGangsStartTogether() throws IOException {
    Trace trace =
        read(
            """
            # two GPUs
            node,a,2,A100,1,80GiB,96000,768GiB,left
            job,first,1,0,100,nearline,1,,4000,32GiB,A100
            job,pair,2,10,50,nearline,1,,,,
            job,small,1,20,30,online,50%,20GiB,,,
            """);
    for (String policy : Policies.names()) {
      ReplayResult result = new Replay(trace, ticks::incrementAndGet).run(policy);
      assertThat(result.started()).isEqualTo(3);
      assertThat(result.gangs()).isEqualTo(1);
      assertThat(result.waits().get(PreemptionClass.NEARLINE).most()).isEqualTo(90);
      assertThat(result.waits().get(PreemptionClass.ONLINE).most()).isZero();
      // (100 + 2 x 50 + 0.5 x 30) of (2 x 150)
      assertThat(result.allocatedPercent()).isCloseTo(100 * 215.0 / 300, within());
      assertThat(result.waiting()).isZero();
    }
  }

  private static org.assertj.core.data.Offset<Double> within() {
    return org.assertj.core.data.Offset.offset(1e-6);
  }

  @ParameterizedTest
  @CsvSource(
      delimiter = ';',
      value = {
        "pod,a; begins with node or job",
        "node,a,1; has 9 fields",
        "job,a,1,0,1,nearline,101%,,,,; share=101",
        "job,a,1,0,1,nearline,0%,,,,; share=0",
        "job,a,0,0,1,nearline,1,,,,; members=0",
        "job,a,1,-1,1,nearline,1,,,,; 0 or more",
        "job,a,1,0,1,urgent,1,,,,; URGENT",
        "job,a,1,0,1,nearline,1,lots,,,; lots",
      })
  void aWrongLineIsNamed(String line, String message) {
    assertThatThrownBy(() -> read("node,a,1,A100,1,80GiB,1,1GiB,\n" + line + "\n"))
        .isInstanceOf(IllegalArgumentException.class)
        .hasMessageContaining("line 2")
        .hasMessageContaining(message);
  }

  /** On a small cluster that fills, vgpu's policy allocates more than the random one. */
  @Test
  void oursGivesAwayMoreThanChance() {
    Inflation inflation = new Inflation(SyntheticFleet.of(40, 3), ticks::incrementAndGet);
    double ours =
        inflation.run((fleet, usual) -> Policies.of("vgpu", fleet, usual), 1).allocatedPercent();
    double random =
        inflation.run((fleet, usual) -> Policies.of("random", fleet, usual), 1).allocatedPercent();
    assertThat(ours).isGreaterThan(random);
  }

  @Test
  void churnRunsWithEveryPolicy() {
    Trace trace = SyntheticFleet.of(8, 3);
    for (String policy : Policies.names()) {
      Outcome outcome =
          new Churn(trace, ticks::incrementAndGet, 1.05, 1)
              .run((fleet, usual) -> Policies.of(policy, fleet, usual), 1);
      assertThat(outcome.allocatedPercent()).isBetween(50.0, 100.0);
      assertThat(outcome.placed()).isPositive().isLessThanOrEqualTo(outcome.asked());
    }
  }
}
