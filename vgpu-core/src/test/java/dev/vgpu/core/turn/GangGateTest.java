package dev.vgpu.core.turn;

import static dev.vgpu.core.turn.GangNode.MS;
import static dev.vgpu.core.turn.GangNode.S;
import static dev.vgpu.core.turn.GangNode.US;
import static dev.vgpu.core.turn.GangNode.request;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.within;

import dev.vgpu.core.turn.GangNode.Worker;
import dev.vgpu.request.PreemptionClass;
import dev.vgpu.request.SharePolicy;
import java.util.ArrayList;
import java.util.List;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** What tenants of several GPUs get beside tenants of one, in virtual time. */
class GangGateTest {
  private final GangNode node = new GangNode(4);

  private Worker add(SharePolicy policy, int percent, long callNs, Integer... gpus) {
    return node.backlogged(
        List.of(gpus), callNs, request(policy, percent, PreemptionClass.NEARLINE));
  }

  private void assertPercent(double percent, double within, List<Worker> workers) {
    for (Worker worker : workers) {
      assertThat(100.0 * worker.usedNs() / node.nowNs)
          .as("%s on %s", worker.id, worker.gpus)
          .isCloseTo(percent, within(within));
    }
  }

  @ParameterizedTest
  @ValueSource(longs = {500 * US, 3 * MS})
  void bestEffortIsEqualOnEachGpu(long callNs) {
    Worker gang = add(SharePolicy.BEST_EFFORT, 0, callNs, 0, 1);
    Worker first = add(SharePolicy.BEST_EFFORT, 0, callNs, 0);
    Worker second = add(SharePolicy.BEST_EFFORT, 0, callNs, 1);
    node.runUntil(10 * S);
    assertPercent(50, 0.5, List.of(gang, first, second));
  }

  @ParameterizedTest
  @ValueSource(longs = {500 * US, 3 * MS})
  void gpuIsNotKeptForGangThatIsEntitledToLessElsewhere(long callNs) {
    Worker gang = add(SharePolicy.BEST_EFFORT, 0, callNs, 0, 1);
    Worker richest = add(SharePolicy.BEST_EFFORT, 0, callNs, 0);
    List<Worker> poor = new ArrayList<>(List.of(gang));
    for (int i = 0; i < 3; i++) {
      poor.add(add(SharePolicy.BEST_EFFORT, 0, callNs, 1));
    }
    node.runUntil(10 * S);
    assertPercent(25, 0.5, poor);
    assertPercent(75, 0.5, List.of(richest));
  }

  @ParameterizedTest
  @ValueSource(longs = {500 * US, 3 * MS})
  void guaranteesAreKeptOnFullyBookedGpus(long callNs) {
    Worker gang = add(SharePolicy.BURST_SHARE, 50, callNs, 0, 1, 2, 3);
    List<Worker> twenties = new ArrayList<>();
    List<Worker> thirties = new ArrayList<>();
    for (int gpu = 0; gpu < 4; gpu++) {
      twenties.add(add(SharePolicy.BURST_SHARE, 20, callNs, gpu));
      thirties.add(add(SharePolicy.BURST_SHARE, 30, callNs, gpu));
    }
    node.runUntil(10 * S);
    assertPercent(50, 0.5, List.of(gang));
    assertPercent(20, 0.5, twenties);
    assertPercent(30, 0.5, thirties);
  }

  @Test
  void gangsThatOverlapInRingTakeTurns() {
    List<Worker> gangs =
        List.of(
            add(SharePolicy.BEST_EFFORT, 0, MS, 0, 1),
            add(SharePolicy.BEST_EFFORT, 0, MS, 1, 2),
            add(SharePolicy.BEST_EFFORT, 0, MS, 0, 2));
    node.runUntil(10 * S);
    assertPercent(100.0 / 3, 0.5, gangs); // two of three GPUs at a time
  }

  @Test
  void fixedGangsDoNotExceedTheirShareAndOthersGetTheirs() {
    Worker gang = add(SharePolicy.FIXED_SHARE, 30, 500 * US, 0, 1);
    Worker first = add(SharePolicy.FIXED_SHARE, 50, 500 * US, 0);
    Worker second = add(SharePolicy.FIXED_SHARE, 70, 500 * US, 1);
    node.runUntil(10 * S);
    assertPercent(50, 0.5, List.of(first));
    assertPercent(70, 0.5, List.of(second));
    // The time for which its first GPU was kept until the second was free is charged to it.
    assertPercent(28.5, 1.6, List.of(gang));
  }

  @Test
  void onlineTenantOnAnyGpuStopsAnOfflineGangOnAll() {
    Worker gang =
        node.backlogged(
            List.of(0, 1), 500 * US, request(SharePolicy.BEST_EFFORT, 0, PreemptionClass.OFFLINE));
    Worker online =
        node.sporadic(
            List.of(1), 5 * MS, request(SharePolicy.BEST_EFFORT, 0, PreemptionClass.ONLINE));
    node.at(10 * MS + 100 * US, () -> online.arrive(1));
    node.runUntil(10 * MS);
    assertThat(gang.isOpen()).isTrue();
    node.runUntil(10 * MS + 100 * US);
    assertThat(gang.isOpen()).isFalse();
    node.runUntil(10 * MS + 500 * US); // when the gang's running call has ended
    assertThat(online.isRunning()).isTrue();
    assertThat(gang.isRunning()).isFalse();
    node.runUntil(15 * MS + 700 * US);
    assertThat(gang.isRunning()).isTrue();
  }

  @Test
  void callThatNeverEndsOnOneGpuDoesNotKeepTheOthers() {
    Worker giant = node.sporadic(List.of(1), 20 * S, request(SharePolicy.BEST_EFFORT, 0, NEAR));
    Worker gang = node.sporadic(List.of(0, 1), MS, request(SharePolicy.BEST_EFFORT, 0, NEAR));
    Worker other = node.backlogged(List.of(0), MS, request(SharePolicy.BEST_EFFORT, 0, NEAR));
    node.at(MS, () -> giant.arrive(1));
    node.at(2 * MS, () -> gang.arrive(1));
    node.runUntil(10 * S);
    assertThat(gang.finished).isZero();
    assertPercent(100, 0.5, List.of(other));
    node.runUntil(21 * S);
    assertThat(gang.finished).isEqualTo(1);
  }

  private static final PreemptionClass NEAR = PreemptionClass.NEARLINE;

  @Test
  void aloneItKeepsItsTurn() {
    Worker gang = add(SharePolicy.BEST_EFFORT, 0, MS, 0, 1, 2, 3);
    node.runUntil(5 * S);
    assertThat(gang.opened).isEqualTo(1);
    assertPercent(100, 0.01, List.of(gang));
  }
}
