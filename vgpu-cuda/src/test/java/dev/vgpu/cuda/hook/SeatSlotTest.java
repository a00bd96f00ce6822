package dev.vgpu.cuda.hook;

import static org.assertj.core.api.Assertions.assertThat;

import dev.vgpu.cuda.layout.ShmLayout.Slot;
import dev.vgpu.cuda.pages.LeasePages;
import dev.vgpu.cuda.pages.MemoryLedger;
import dev.vgpu.cuda.process.ProcessLife;
import java.io.IOException;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.OptionalLong;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/**
 * A busy process without a heartbeat. It keeps its turn while the kernel reports it as running.
 * Once stopped, it holds up no other process.
 */
class SeatSlotTest {
  private static final int NUMBER = 3;
  private static final long PID = 77;
  private static final long MS = 1_000_000;

  @TempDir private Path directory;
  private LeasePages pages;
  private SlotReadings readings;
  private SeatSlot slot;
  private ProcessLife.State state = ProcessLife.State.ALIVE;
  private int asked;
  private boolean open = true;
  private long nowNs = 1_000 * MS;

  private final class Kernel implements ProcessLife {
    @Override
    public long pidNamespace() {
      return 1;
    }

    @Override
    public State state(long pid, long startTime) {
      asked++;
      return state;
    }

    @Override
    public boolean isHere(long pid) {
      return true;
    }

    @Override
    public Mapping mapping(long pid, String pathEnd) {
      return Mapping.MAPPED;
    }

    @Override
    public OptionalLong pidHere(long pid, long startTime) {
      return OptionalLong.empty();
    }

    @Override
    public OptionalLong startedWith(List<String> variables) {
      return OptionalLong.empty();
    }

    @Override
    public boolean isStartedWith(long pid, List<String> variables) {
      return false;
    }
  }

  @BeforeEach
  void begin() throws IOException {
    pages = LeasePages.in(directory, null);
    readings = new SlotReadings(pages.report());
    slot = new SeatSlot(readings, NUMBER, PID, 1, 1, true, nowNs);
    set(Slot.BUSY, 1);
    beatFor(5);
  }

  private void set(int field, int value) {
    pages.report().setInt(MemoryLedger.slotAt(NUMBER) + field, value);
  }

  private void look() {
    readings.refresh(NUMBER);
    slot.refreshed();
    slot.observe(nowNs, open, new Kernel());
  }

  /** Lets the seat look every millisecond, with or without a heartbeat of the process. */
  private void passes(int milliseconds, boolean beats) {
    for (int i = 0; i < milliseconds; i++) {
      nowNs += MS;
      if (beats) {
        pages.report().setLong(MemoryLedger.slotAt(NUMBER) + Slot.HEARTBEAT_NS, nowNs);
      }
      look();
    }
  }

  private void beatFor(int milliseconds) {
    passes(milliseconds, true);
  }

  private void quietFor(int milliseconds) {
    passes(milliseconds, false);
  }

  private List<String> suspicions() {
    List<String> told = new ArrayList<>();
    slot.suspicions.drainTo(told);
    return told;
  }

  @Test
  void whoShowsThatItLivesIsNotAskedAbout() {
    state = ProcessLife.State.STOPPED;
    beatFor(100);
    assertThat(slot.hasWork()).isTrue();
    assertThat(asked).isZero();
  }

  @Test
  void whoWasStoppedHoldsNobodyUpAfterMilliseconds() {
    state = ProcessLife.State.STOPPED;
    quietFor(3);
    assertThat(slot.hasWork()).as("it may only be late").isTrue();
    quietFor(1);
    assertThat(slot.hasWork()).isFalse();
    assertThat(slot.isBusy(false)).isFalse();
    state = ProcessLife.State.ALIVE;
    beatFor(1);
    assertThat(slot.hasWork()).as("it goes on").isTrue();
    assertThat(suspicions()).isEmpty();
  }

  @Test
  void whoIsOnlyLateKeepsItsTurnForALimitedTime() {
    quietFor(60);
    assertThat(slot.hasWork()).isTrue();
    assertThat(asked).as("each other millisecond at most").isBetween(20, 30);
    assertThat(suspicions()).isEmpty();
    quietFor(1);
    assertThat(slot.hasWork()).isFalse();
    assertThat(suspicions()).singleElement().asString().contains("sent no heartbeat for 60 ms");
  }

  @Test
  void whoOnlyWaitsForItsGateShowsThatItLivesSeldom() {
    open = false;
    set(Slot.BUSY, 0);
    set(Slot.WAITING, 1);
    beatFor(1);
    quietFor(20);
    assertThat(asked).isZero();
    state = ProcessLife.State.STOPPED;
    quietFor(1);
    assertThat(slot.hasWork()).isFalse();
  }

  @Test
  void whoWasStoppedWhileItWaitedHoldsNobodyUpOnceItsGateOpens() {
    open = false;
    set(Slot.BUSY, 0);
    set(Slot.WAITING, 1);
    beatFor(1);
    state = ProcessLife.State.STOPPED;
    quietFor(8);
    assertThat(slot.hasWork()).isTrue();
    open = true;
    quietFor(1);
    assertThat(slot.hasWork()).isFalse();
  }

  @Test
  void whoDoesNothingNeedNotShowThatItLives() {
    set(Slot.BUSY, 0);
    state = ProcessLife.State.STOPPED;
    quietFor(1_000);
    assertThat(slot.isStopped()).isFalse();
    assertThat(asked).isZero();
    set(Slot.BUSY, 1);
    quietFor(3);
    assertThat(slot.hasWork()).as("its work is new").isTrue();
  }

  @Test
  void seatThatWasAwayItselfCannotTell() {
    nowNs += 500 * MS;
    look();
    quietFor(50);
    assertThat(slot.hasWork()).isTrue();
    assertThat(suspicions()).isEmpty();
  }
}
