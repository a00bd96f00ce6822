package dev.vgpu.cuda.pages;

import static dev.vgpu.cuda.layout.ShmLayout.GRANT_MORE_OFFSET;
import static dev.vgpu.cuda.layout.ShmLayout.MEMORY_GPUS;
import static dev.vgpu.cuda.layout.ShmLayout.MEMORY_SEQ_MASK;
import static dev.vgpu.cuda.layout.ShmLayout.MEMORY_UNITS_SHIFT;
import static dev.vgpu.cuda.layout.ShmLayout.SLOT_ATTACHED;
import static dev.vgpu.cuda.layout.ShmLayout.SLOT_FREE;
import static dev.vgpu.cuda.layout.ShmLayout.SLOT_RECLAIMING;
import static org.assertj.core.api.Assertions.assertThat;

import dev.vgpu.cuda.layout.ShmLayout;
import dev.vgpu.cuda.layout.ShmLayout.GrantMore;
import dev.vgpu.cuda.layout.ShmLayout.Slot;
import dev.vgpu.cuda.pages.MemoryLedger.Retired;
import java.nio.ByteBuffer;
import java.util.Random;
import net.jqwik.api.ForAll;
import net.jqwik.api.Property;
import net.jqwik.api.Tag;
import org.jspecify.annotations.Nullable;

@Tag("property")
class MemoryLedgerProperties {
  private static final int PROCESSES = 4;
  private static final long LIMIT = 40;

  /** Stands for a kill of the seat's holder. */
  private static final class SeatDied extends RuntimeException {
    private static final long serialVersionUID = 1L;
  }

  /** The page as the seat sees it: others run between any two of its accesses. */
  private static final class Disturbed extends SharedPage {
    private final Runnable disturbance;

    Disturbed(SharedPage page, Runnable disturbance) {
      super(page.buffer());
      this.disturbance = disturbance;
    }

    @Override
    public int intAt(int offset) {
      disturbance.run();
      return super.intAt(offset);
    }

    @Override
    public long longAt(int offset) {
      disturbance.run();
      return super.longAt(offset);
    }

    @Override
    public void setInt(int offset, int value) {
      disturbance.run();
      super.setInt(offset, value);
    }

    @Override
    public void setLong(int offset, long value) {
      disturbance.run();
      super.setLong(offset, value);
    }

    @Override
    boolean compareAndSet(int offset, long expected, long value) {
      disturbance.run();
      return super.compareAndSet(offset, expected, value);
    }
  }

  private static SharedPage page(int bytes) {
    return new SharedPage(ByteBuffer.allocateDirect(bytes));
  }

  /** A lease with its processes, and a seat that reclaims what dead processes held. */
  private static final class Node {
    final Random random;
    final SharedPage report = page(ShmLayout.REPORT_SIZE);
    final SharedPage grant = page(ShmLayout.GRANT_SIZE);
    final @Nullable LedgerProcess[] processes = new LedgerProcess[PROCESSES + 1];
    final boolean[] dead = new boolean[PROCESSES + 1];
    final int[] sleeps = new int[PROCESSES + 1];
    final boolean seatMayDie;
    final boolean uneven;
    final int gpus;
    int recovering;

    Node(long seed, boolean seatMayDie) {
      this.random = new Random(seed);
      this.gpus = random.nextBoolean() ? 1 : 2 + random.nextInt(MEMORY_GPUS - 1);
      grant.setInt(GRANT_MORE_OFFSET + GrantMore.MEMORY_GPUS, gpus == 1 ? 0 : gpus);
      this.seatMayDie = seatMayDie;
      boolean wraps = random.nextBoolean();
      this.uneven = random.nextBoolean();
      for (int slot = 1; slot <= PROCESSES; slot++) {
        if (wraps) {
          // Close to the largest number, so that it soon wraps.
          long seq = (long) MEMORY_SEQ_MASK - random.nextInt(4);
          for (int gpu = 0; gpu < gpus; gpu++) {
            report.setLong(MemoryLedger.slotAt(slot) + MemoryLedger.ownAt(gpu), seq);
          }
          report.setLong(MemoryLedger.slotAt(slot) + Slot.MEMORY_SEQ, seq);
        }
        start(slot);
      }
    }

    void start(int slot) {
      report.setInt(MemoryLedger.slotAt(slot) + Slot.STATE, SLOT_ATTACHED);
      processes[slot] = new LedgerProcess(report, slot, LIMIT);
      dead[slot] = false;
    }

    /**
     * One step of a live process that is not stopped. It may be stopped afterwards, most often at
     * bad moments.
     */
    void stepSome() {
      int slot = 1 + random.nextInt(PROCESSES);
      if (uneven) {
        slot = Math.min(slot, 1 + random.nextInt(PROCESSES));
      }
      LedgerProcess process = processes[slot];
      if (process == null || dead[slot] || sleeps[slot]-- > 0) {
        return;
      }
      if (process.isIdle()) {
        int gpu = random.nextInt(gpus);
        int holds = (int) process.holdsUnits[gpu];
        boolean frees = holds > 0 && random.nextBoolean();
        process.begin(frees ? -1 - random.nextInt(holds) : 1 + random.nextInt(12), gpu);
      }
      process.step();
      sleeps[slot] =
          process.isAboutToMark() && random.nextInt(3) == 0
              ? random.nextInt(150)
              : random.nextInt(10) == 0 ? random.nextInt(20) : 0;
      check();
    }

    void check() {
      for (int gpu = 0; gpu < gpus; gpu++) {
        check(gpu);
      }
    }

    private void check(int gpu) {
      long held = 0;
      for (int slot = 1; slot <= PROCESSES; slot++) {
        LedgerProcess process = processes[slot];
        held += process == null ? 0 : process.holdsUnits[gpu];
      }
      long units = units(gpu);
      assertThat(units).isLessThanOrEqualTo(LIMIT);
      LedgerProcess taken = recovering == 0 ? null : processes[recovering];
      if (taken == null) {
        assertThat(units).isEqualTo(held);
      } else {
        assertThat(units).isIn(held, held - taken.holdsUnits[gpu]);
      }
    }

    private long units(int gpu) {
      return report.longAt(MemoryLedger.wordAt(gpu)) >>> MEMORY_UNITS_SHIFT;
    }

    void killAll() {
      for (int slot = 1; slot <= PROCESSES; slot++) {
        dead[slot] = true;
      }
      recoverDead();
      for (int gpu = 0; gpu < MEMORY_GPUS; gpu++) {
        assertThat(units(gpu)).isZero();
      }
    }

    void disturb() {
      // Usually a few steps of others between two of the seat's, sometimes many.
      int steps = random.nextInt(12) == 0 ? random.nextInt(80) : random.nextInt(3);
      for (int i = 0; i < steps; i++) {
        stepSome();
      }
      if (seatMayDie && random.nextInt(25) == 0) {
        throw new SeatDied();
      }
    }

    MemoryLedger seat() {
      return new MemoryLedger(
          new Disturbed(grant, this::disturb), new Disturbed(report, this::disturb));
    }

    void recoverDead() {
      for (int slot = 1; slot <= PROCESSES; slot++) {
        if (dead[slot] && processes[slot] != null) {
          recover(slot);
        }
      }
    }

    private void recover(int slot) {
      recovering = slot;
      Retired before = Retired.in(grant);
      Retired after =
          new Retired(
              before.gpuNs() + slot,
              before.launches() + 1,
              before.denied(),
              before.copyNs() + 2L * slot);
      try {
        seat().recover(slot, after);
      } catch (SeatDied e) {
        // The next holder of the seat continues below.
        takeOver(slot, after);
      }
      assertThat(Retired.in(grant)).isEqualTo(after);
      assertThat(report.intAt(MemoryLedger.slotAt(slot) + Slot.STATE)).isEqualTo(SLOT_FREE);
      assertThat(report.longAt(MemoryLedger.slotAt(0) + Slot.MEMORY_TARGET)).isZero();
      processes[slot] = null;
      recovering = 0;
      check();
    }

    private void takeOver(int slot, Retired after) {
      while (true) {
        try {
          MemoryLedger seat = seat();
          seat.takeOver();
          if (report.intAt(MemoryLedger.slotAt(slot) + Slot.STATE) != SLOT_FREE) {
            // Not begun, or only marked: the slot is found dead again.
            seat.recover(slot, after);
          }
          return;
        } catch (SeatDied e) {
          // The next holder of the seat continues below.
        }
      }
    }

    void touch() {
      try {
        seat().touch();
      } catch (SeatDied e) {
        // The next holder of the seat continues below.
      }
      check();
    }

    void run(int actions) {
      for (int i = 0; i < actions; i++) {
        int what = random.nextInt(60);
        if (what == 0) {
          dead[1 + random.nextInt(PROCESSES)] = true;
        } else if (what == 1 || what == 2) {
          recoverDead();
        } else if (what == 3 && random.nextInt(4) == 0) {
          touch();
        } else if (what == 4 || what == 5) {
          for (int slot = 1; slot <= PROCESSES; slot++) {
            if (processes[slot] == null) {
              start(slot);
            }
          }
        } else {
          stepSome();
        }
      }
    }
  }

  @Property(tries = 400)
  void theTotalIsWhatTheLivingHoldWhereverOneDies(@ForAll long seed) {
    Node node = new Node(seed, false);
    node.run(1_500);
    node.killAll();
  }

  @Property(tries = 400)
  void theTotalIsWhatTheLivingHoldWhereverTheSeatDies(@ForAll long seed) {
    Node node = new Node(seed, true);
    node.run(1_500);
    node.killAll();
  }

  @Property(tries = 200)
  void aPageFullOfGarbageNeitherHangsNorThrows(@ForAll long seed) {
    Random random = new Random(seed);
    SharedPage report = page(ShmLayout.REPORT_SIZE);
    SharedPage grant = page(ShmLayout.GRANT_SIZE);
    for (int at = ShmLayout.Header.BYTES; at < ShmLayout.REPORT_SIZE; at += Long.BYTES) {
      report.setLong(at, random.nextInt(8) == 0 ? random.nextInt(4) : random.nextLong());
    }
    report.setInt(MemoryLedger.slotAt(3) + Slot.STATE, SLOT_RECLAIMING);
    grant.setInt(GRANT_MORE_OFFSET + GrantMore.MEMORY_GPUS, random.nextInt(MEMORY_GPUS + 1));
    MemoryLedger seat = new MemoryLedger(grant, report);
    seat.takeOver();
    seat.recover(1 + random.nextInt(127), new Retired(1, 2, 3, 4));
    seat.touch();
    assertThat(seat.usedBytes()).isNotNegative();
    assertThat(seat.heldBytes(5)).isBetween(0L, seat.usedBytes());
  }
}
