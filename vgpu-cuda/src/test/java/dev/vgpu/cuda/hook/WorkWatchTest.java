package dev.vgpu.cuda.hook;

import static dev.vgpu.cuda.hook.WorkWatch.DRAINED;
import static dev.vgpu.cuda.hook.WorkWatch.PROCESSES;
import static dev.vgpu.cuda.hook.WorkWatch.WANTED;
import static org.assertj.core.api.Assertions.assertThat;

import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;

class WorkWatchTest {
  private static final long MS = 1_000_000;

  private final WorkWatch watch = new WorkWatch();
  private long nowNs;

  @BeforeEach
  void oneProcess() {
    assertThat(idle(true)).isEqualTo(PROCESSES);
  }

  private int busy() {
    return watch.take(1, true, true, false, false, nowNs);
  }

  private int waiting() {
    return watch.take(1, true, false, false, false, nowNs);
  }

  private int idle(boolean isTold) {
    return watch.take(1, false, false, false, isTold, nowNs);
  }

  private void inATurn() {
    watch.contended(true);
    assertThat(waiting()).isEqualTo(WANTED);
    watch.opened();
    assertThat(busy()).isZero();
  }

  /** It may have ended before the first look: then nothing else would tell of its end. */
  @Test
  void anotherSeatsProcessIsToldOfAlsoIfItHasEnded() {
    WorkWatch next = new WorkWatch();
    next.adopted();
    assertThat(next.take(0, false, false, false, true, nowNs)).isEqualTo(PROCESSES);
    assertThat(next.processes()).isZero();
    assertThat(next.take(0, false, false, false, true, nowNs)).isZero();
  }

  @Test
  void workIsToldOnce() {
    assertThat(waiting()).isEqualTo(WANTED);
    assertThat(waiting()).isZero();
    assertThat(watch.worked()).isTrue();
    assertThat(idle(true)).isZero();
    assertThat(watch.worked()).isFalse();
    assertThat(waiting()).isEqualTo(WANTED);
  }

  @Test
  void idlenessThatIsToldEndsATurn() {
    inATurn();
    assertThat(idle(true)).isEqualTo(DRAINED);
    assertThat(idle(true)).isZero();
    assertThat(busy()).isEqualTo(WANTED);
    assertThat(idle(true)).isEqualTo(DRAINED);
  }

  @Test
  void aPauseBetweenKernelsDoesNotEndATurn() {
    inATurn();
    for (int i = 0; i < 100; i++) {
      nowNs += 2 * MS;
      assertThat(watch.take(1, false, false, true, false, nowNs)).isZero();
      assertThat(watch.worked()).isTrue();
    }
  }

  @Test
  void idlenessThatLastsEndsATurnThoughItsMessageIsLost() {
    inATurn();
    assertThat(idle(false)).isZero();
    nowNs += 4 * MS;
    assertThat(idle(false)).isZero();
    nowNs += 2 * MS;
    assertThat(idle(false)).isEqualTo(DRAINED);
  }

  @Test
  void whereNobodyElseWaitsIdlenessIsNotTold() {
    assertThat(waiting()).isEqualTo(WANTED);
    watch.opened();
    assertThat(busy()).isZero();
    assertThat(idle(true)).isZero();
    watch.contended(true);
    assertThat(idle(true)).isEqualTo(DRAINED);
  }

  @Test
  void theEndOfWorkAfterShuttingIsToldWhoeverWaits() {
    assertThat(busy()).isEqualTo(WANTED);
    watch.opened();
    watch.shut(true, nowNs);
    assertThat(watch.isDraining()).isTrue();
    assertThat(busy()).isZero();
    assertThat(idle(false)).isEqualTo(DRAINED);
    assertThat(watch.isDraining()).isFalse();
    // Work that begins now is new to the listener.
    assertThat(waiting()).isEqualTo(WANTED);
  }

  @Test
  void whatWaitsAfterATurnIsWorkStill() {
    inATurn();
    watch.shut(true, nowNs);
    assertThat(waiting()).isEqualTo(DRAINED);
    assertThat(watch.worked()).isTrue();
  }

  @Test
  void theLastProcessThatGoesEndsATurn() {
    inATurn();
    assertThat(watch.take(0, false, false, false, true, nowNs)).isEqualTo(PROCESSES | DRAINED);
    assertThat(watch.processes()).isZero();
  }

  @Test
  void processThatComesOrGoesDoesNotEndTheOthersTurn() {
    inATurn();
    // The others are between two kernels at that moment.
    assertThat(watch.take(2, false, false, true, false, nowNs)).isEqualTo(PROCESSES);
    nowNs += MS;
    assertThat(watch.take(1, false, false, true, false, nowNs)).isEqualTo(PROCESSES);
    assertThat(watch.worked()).isTrue();
    assertThat(busy()).isZero();
  }

  @Test
  void whoClaimsToBeBusyForEverHoldsNobodyUpForEver() {
    inATurn();
    watch.shut(true, nowNs);
    nowNs += 200 * MS;
    assertThat(busy()).isZero();
    nowNs += MS;
    assertThat(busy()).isEqualTo(DRAINED);
    // Not believed next time; believed again once it has ended by itself.
    watch.opened();
    watch.shut(true, nowNs);
    nowNs += 6 * MS;
    assertThat(busy()).isEqualTo(DRAINED);
    watch.opened();
    watch.shut(true, nowNs);
    assertThat(waiting()).isEqualTo(DRAINED);
    watch.opened();
    watch.shut(true, nowNs);
    nowNs += 6 * MS;
    assertThat(busy()).isZero();
  }

  @Test
  void whoAsksAgainGivesTheWorkNoMoreTimeAndTakesNoEventAway() {
    inATurn();
    watch.shut(true, nowNs);
    for (int i = 0; i < 4; i++) {
      nowNs += 50 * MS;
      assertThat(busy()).isZero();
      watch.shut(true, nowNs);
    }
    nowNs += MS;
    assertThat(busy()).isEqualTo(DRAINED);
    watch.opened();
    watch.shut(true, nowNs);
    nowNs += MS;
    watch.shut(false, nowNs);
    assertThat(waiting()).isEqualTo(DRAINED);
  }
}
