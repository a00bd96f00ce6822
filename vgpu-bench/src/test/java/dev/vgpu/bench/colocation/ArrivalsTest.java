package dev.vgpu.bench.colocation;

import static org.assertj.core.api.Assertions.assertThat;

import java.util.List;
import org.assertj.core.data.Offset;
import org.junit.jupiter.api.Test;

final class ArrivalsTest {
  private static final long LENGTH_NS = 18_000_000_000L;
  private static final long SECOND_NS = 1_000_000_000L;

  @Test
  void requestsKeepTheGpuAsBusyAsAsked() {
    for (AzureTrace trace : AzureTrace.values()) {
      for (double load : new double[] {0.2, 0.4, 0.6}) {
        Arrivals arrivals = Arrivals.of(trace.requests(), load, LENGTH_NS);
        assertThat(arrivals.serviceNs() / (double) LENGTH_NS)
            .as("%s %s", trace, load)
            .isCloseTo(load, Offset.offset(0.003));
        assertThat(arrivals.requests()).allMatch(r -> r.dueNs() >= 0 && r.dueNs() < LENGTH_NS);
      }
    }
  }

  @Test
  void theBurstOf67RequestsInOneSecondIsReplayedAndNotSlowedDown() {
    List<Request> trace = AzureTrace.CODE.requests();
    int burst = firstOfBurst(trace, 67);
    for (double load : new double[] {0.2, 0.4, 0.6}) {
      List<Request> replayed = Arrivals.of(trace, load, LENGTH_NS).requests();
      assertThat(replayed.size()).as("%s", load).isGreaterThan(burst + 67);
      long tookNs = replayed.get(burst + 66).dueNs() - replayed.get(burst).dueNs();
      assertThat(tookNs).as("%s", load).isLessThanOrEqualTo(SECOND_NS);
    }
  }

  @Test
  void aTraceThatIsBegunAnewGoesOnFromItsEnd() {
    List<Request> trace =
        List.of(new Request(0, 1, 1), new Request(40, 1, 1), new Request(100, 1, 1));
    assertThat(Arrivals.spanNs(trace, 1)).isZero();
    assertThat(Arrivals.spanNs(trace, 3)).isEqualTo(100);
    assertThat(Arrivals.spanNs(trace, 4)).isEqualTo(100);
    assertThat(Arrivals.spanNs(trace, 8)).isEqualTo(240);
  }

  private static int firstOfBurst(List<Request> trace, int count) {
    for (int i = 0; i + count <= trace.size(); i++) {
      if (trace.get(i + count - 1).dueNs() - trace.get(i).dueNs() < SECOND_NS) {
        return i;
      }
    }
    throw new AssertionError("no burst");
  }

  @Test
  void partsTogetherAreTheWhole() {
    Arrivals arrivals = Arrivals.of(AzureTrace.CONV.requests(), 0.4, LENGTH_NS);
    long serviceNs = 0;
    int count = 0;
    for (int i = 0; i < 3; i++) {
      Arrivals part = arrivals.part(i, 3);
      assertThat(part.requests()).allMatch(r -> r.dueNs() >= 0 && r.dueNs() < part.lengthNs());
      serviceNs += part.serviceNs();
      count += part.requests().size();
    }
    assertThat(count).isEqualTo(arrivals.requests().size());
    assertThat(serviceNs).isEqualTo(arrivals.serviceNs());
  }

  @Test
  void aTraceThatIsTooShortBeginsAgain() {
    List<Request> short1 = List.of(new Request(0, 10, 0), new Request(100, 10, 0));
    Arrivals arrivals = Arrivals.of(short1, 0.5, 100);
    assertThat(arrivals.requests()).hasSize(5);
    assertThat(arrivals.requests())
        .isSortedAccordingTo((a, b) -> Long.compare(a.dueNs(), b.dueNs()));
  }

  @Test
  void aStormHasSoManyRequestsASecond() {
    Arrivals storm = Arrivals.random(200_000, 1_000, 4 * SECOND_NS);
    assertThat(storm.requests().size()).isBetween(3_800, 4_200);
    assertThat(storm).isEqualTo(Arrivals.random(200_000, 1_000, 4 * SECOND_NS));
  }
}
