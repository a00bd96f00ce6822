package dev.vgpu.cuda.pages;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.vgpu.cuda.files.HookLibrary;
import dev.vgpu.cuda.layout.ShmLayout;
import java.io.IOException;
import java.io.RandomAccessFile;
import java.nio.ByteBuffer;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;

/** Page files that a tenant truncates and extends while the seat accesses them. */
@Timeout(120)
class PagesCutShortTest {
  private static final int SIZE = ShmLayout.REPORT_SIZE;
  private static final int CASES = 100;

  @TempDir private Path directory;
  private volatile boolean ended;

  private Thread cutter(Path path) {
    Thread thread =
        new Thread(
            () -> {
              try (RandomAccessFile file = new RandomAccessFile(path.toFile(), "rw")) {
                while (!ended) {
                  file.setLength(0);
                  file.setLength(SIZE);
                }
              } catch (IOException e) {
                throw new IllegalStateException(e);
              }
            });
    thread.setDaemon(true);
    thread.start();
    return thread;
  }

  private PageChanger changer() {
    return new PageChanger(
        () -> HookLibrary.checkpointProgram(Map.of()).in(directory.toAbsolutePath()));
  }

  /**
   * A fault on a mapping crashes a JVM, or is thrown later: in another method, and perhaps while
   * the seat handles another lease.
   */
  @Test
  void noFaultReachesThisProcess() throws Exception {
    Path path = directory.resolve("report");
    Files.write(path, new byte[SIZE]);
    int lost = 0;
    int done = 0;
    try (PageChanger changer = changer();
        ReportPage page = LeasePages.mapShared(path, SIZE, changer)) {
      Thread cutter = cutter(path);
      for (int i = 0; i < 200_000 && (lost < CASES || done < CASES); i++) {
        try {
          done += page.compareAndSet(128, 0, 0) ? 1 : 0;
        } catch (ReportPage.LostException e) {
          lost++;
        }
      }
      ended = true;
      cutter.join();
    }
    assertThat(Math.min(lost, done)).isEqualTo(CASES);
  }

  @Test
  void aWordIsChangedOnlyFromItsValueAndOnlyInAWholeFile() throws Exception {
    Path path = directory.resolve("report");
    Files.write(path, new byte[SIZE]);
    try (PageChanger changer = changer();
        ReportPage page = LeasePages.mapShared(path, SIZE, changer)) {
      assertThat(page.compareAndSet(SIZE - 8, 0, -7)).isTrue();
      assertThat(page.compareAndSet(SIZE - 8, 0, 5)).isFalse();
      assertThat(page.longAt(SIZE - 8)).isEqualTo(-7);
      assertThat(page.longAt(SIZE - 16)).isZero();
      Files.write(path, new byte[SIZE - 1]);
      assertThatThrownBy(() -> page.compareAndSet(128, 0, 1))
          .isInstanceOf(ReportPage.LostException.class);
    }
  }

  @Test
  void aProcessThatWasEndedIsStartedAnew() throws Exception {
    Path path = directory.resolve("report");
    Files.write(path, new byte[SIZE]);
    try (PageChanger changer = changer();
        ReportPage page = LeasePages.mapShared(path, SIZE, changer)) {
      for (long i = 0; i < 5; i++) {
        assertThat(page.compareAndSet(128, i, i + 1)).isTrue();
        List<ProcessHandle> started =
            ProcessHandle.current()
                .children()
                .filter(child -> child.info().command().orElse("").contains("vgpu-checkpoint"))
                .toList();
        started.forEach(ProcessHandle::destroyForcibly);
      }
      assertThat(page.longAt(128)).isEqualTo(5);
    }
  }

  @Test
  void withoutTheProgramWordsAreChangedHere() throws Exception {
    Path path = directory.resolve("report");
    Files.write(path, new byte[SIZE]);
    try (PageChanger changer = new PageChanger(() -> directory.resolve("nothing"));
        ReportPage page = LeasePages.mapShared(path, SIZE, changer)) {
      assertThat(page.compareAndSet(128, 0, 1)).isTrue();
      assertThat(page.compareAndSet(128, 0, 1)).isFalse();
    }
  }

  @Test
  void aChangeOfTheLedgerMarksTheOneBeforeAndKeepsItsUnits() throws Exception {
    Path path = directory.resolve("report");
    Files.write(path, new byte[SIZE]);
    int word = MemoryLedger.wordAt(2);
    int mark = MemoryLedger.slotAt(3) + MemoryLedger.doneAt(2);
    try (PageChanger changer = changer();
        ReportPage page = LeasePages.mapShared(path, SIZE, changer)) {
      page.setLong(
          word, 40L << ShmLayout.MEMORY_UNITS_SHIFT | 3L << ShmLayout.MEMORY_SLOT_SHIFT | 5);
      page.setLong(mark, 7L << ShmLayout.MEMORY_SLOT_SHIFT | 4);
      assertThat(page.changeLedger(word, -15, 9, MemoryLedger.doneAt(2))).isTrue();
      assertThat(page.longAt(word)).isEqualTo(25L << ShmLayout.MEMORY_UNITS_SHIFT | 9);
      assertThat(page.longAt(mark)).isEqualTo(8L << ShmLayout.MEMORY_SLOT_SHIFT | 5);
      assertThat(page.changeLedger(word, -26, 10, MemoryLedger.doneAt(2))).isTrue();
      assertThat(page.longAt(word)).isEqualTo(10);
    }
  }

  @Test
  void aProgramThatChangesTheLedgerWithoutAPauseKeepsNobodyWaiting() throws Exception {
    Path path = directory.resolve("report");
    Files.write(path, new byte[SIZE]);
    try (PageChanger changer = changer();
        ReportPage page = LeasePages.mapShared(path, SIZE, changer)) {
      SharedPage hostile = new SharedPage(page.buffer());
      Thread program =
          new Thread(
              () -> {
                for (long i = 1; !ended; i++) {
                  hostile.setLong(MemoryLedger.wordAt(0), i << ShmLayout.MEMORY_UNITS_SHIFT);
                }
              });
      program.setDaemon(true);
      program.start();
      SharedPage grant = new SharedPage(ByteBuffer.allocateDirect(ShmLayout.GRANT_SIZE));
      for (int slot = 1; slot < CASES; slot++) { // an attempt at a time, this takes an hour
        new MemoryLedger(grant, page).recover(slot, new MemoryLedger.Retired(0, 0, 0, 0));
      }
      ended = true;
      program.join();
      assertThat(page.longAt(MemoryLedger.slotAt(0) + ShmLayout.Slot.MEMORY_SEQ))
          .isEqualTo(CASES - 1);
    }
  }
}
