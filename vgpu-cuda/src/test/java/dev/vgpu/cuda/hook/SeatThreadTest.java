package dev.vgpu.cuda.hook;

import static dev.vgpu.cuda.layout.ShmLayout.GRANT_MORE_OFFSET;
import static dev.vgpu.cuda.layout.ShmLayout.SEAT_THREAD_ENDED;
import static org.assertj.core.api.Assertions.assertThat;

import dev.vgpu.cuda.layout.ShmLayout.GrantMore;
import dev.vgpu.cuda.pages.FutexWake;
import dev.vgpu.cuda.pages.GrantPage;
import dev.vgpu.cuda.pages.LeasePages;
import dev.vgpu.cuda.pages.RobustWords;
import dev.vgpu.cuda.pages.SharedPage;
import dev.vgpu.cuda.pages.Wake;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicBoolean;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;

/** The end of the seat's thread, as the grant pages show it. */
@Timeout(60)
class SeatThreadTest {
  private static final int WORD = GrantPage.SEAT_THREAD;
  private static final int WAITERS = 0x8000_0000;

  private static final long SELF = ProcessHandle.current().pid();

  @TempDir private Path run;
  private final FutexWake wake = new FutexWake();
  private final List<SeatThread> made = new ArrayList<>();
  private SharedPage first;
  private SharedPage second;

  @BeforeEach
  void open() throws IOException {
    wake.prepare();
    wake.close(); // waits until it can
    first = LeasePages.in(Files.createDirectory(run.resolve("first")), null).grant();
    second = LeasePages.in(Files.createDirectory(run.resolve("second")), null).grant();
    for (SharedPage page : List.of(first, second)) {
      new GrantPage(page, false).begin(SELF, 1, 2, 3);
    }
  }

  /** One whose list stays in memory until the kernel has read it. */
  private SeatThread thread(Wake calls) {
    SeatThread thread = new SeatThread(calls);
    made.add(thread);
    return thread;
  }

  /** Runs on a thread, and returns when the kernel has ended that. */
  private static void onThread(Runnable work) throws Exception {
    CompletableFuture<Path> task = new CompletableFuture<>();
    Thread thread =
        new Thread(
            () -> {
              try {
                Path self = Path.of("/proc/thread-self").toRealPath();
                work.run();
                task.complete(self);
              } catch (IOException | RuntimeException | Error e) {
                task.completeExceptionally(e);
              }
            });
    thread.start();
    Path self = task.get(30, TimeUnit.SECONDS);
    while (Files.exists(self)) {
      Thread.onSpinWait();
    }
  }

  @Test
  void theKernelTellsTheEndOfAThreadOnEachPage() throws Exception {
    List<GrantPage> grants = List.of(new GrantPage(first, false), new GrantPage(second, false));
    onThread(
        () -> {
          thread(wake).follow(() -> grants);
          for (SharedPage page : List.of(first, second)) {
            assertThat(page.intAt(WORD)).isNegative(); // it has FUTEX_WAITERS: the kernel wakes
            assertThat(page.intAt(WORD) & ~WAITERS).isPositive();
            assertThat(page.intAt(WORD) & SEAT_THREAD_ENDED).isZero();
            assertThat(page.longAt(GRANT_MORE_OFFSET + GrantMore.SEAT_THREAD_OF)).isEqualTo(SELF);
          }
        });
    assertThat(first.intAt(WORD)).isEqualTo(WAITERS | SEAT_THREAD_ENDED);
    assertThat(second.intAt(WORD)).isEqualTo(WAITERS | SEAT_THREAD_ENDED);
  }

  @Test
  void aThreadThatServesNoMoreShowsIt() throws Exception {
    onThread(
        () -> {
          SeatThread thread = thread(wake);
          thread.follow(() -> List.of(new GrantPage(first, false)));
          thread.ended();
          assertThat(first.intAt(WORD)).isEqualTo(WAITERS | SEAT_THREAD_ENDED);
          new GrantPage(first, false).begin(SELF, 1, 2, 3); // the same process takes the seat again
          assertThat(first.intAt(WORD)).isZero();
        });
    assertThat(first.intAt(WORD)).isZero();
  }

  @Test
  void anotherHoldersWordStays() throws Exception {
    onThread(
        () -> {
          SeatThread thread = thread(wake);
          thread.follow(() -> List.of(new GrantPage(first, false), new GrantPage(second, false)));
          first.setInt(WORD, 5);
          second.setInt(WORD, 5);
          thread.ended();
        });
    assertThat(first.intAt(WORD)).isEqualTo(5);
    onThread(
        () -> {
          thread(wake).follow(() -> List.of(new GrantPage(second, false)));
          second.setInt(WORD, 5);
        });
    assertThat(second.intAt(WORD)).isEqualTo(5);
  }

  @Test
  void leasesComeAndGo() throws Exception {
    GrantPage goes = new GrantPage(first, false);
    GrantPage comes = new GrantPage(second, false);
    onThread(
        () -> {
          SeatThread thread = thread(wake);
          thread.follow(() -> List.of(goes));
          thread.changed();
          thread.follow(() -> List.of(goes, comes));
          thread.changed();
          thread.follow(() -> List.of(comes));
          first.setInt(WORD, 6);
        });
    assertThat(first.intAt(WORD)).isEqualTo(6);
    assertThat(second.intAt(WORD)).isEqualTo(WAITERS | SEAT_THREAD_ENDED);
  }

  /** JNA loads on another thread meanwhile. */
  @Test
  void toldAsSoonAsItCanBe() throws Exception {
    AtomicBoolean ready = new AtomicBoolean();
    Wake late =
        new Wake() {
          @Override
          public void all(SharedPage page, int offset) {}

          @Override
          public Optional<RobustWords> ofThisThread(int offset) {
            return ready.get() ? wake.ofThisThread(offset) : Optional.empty();
          }
        };
    onThread(
        () -> {
          SeatThread thread = thread(late);
          thread.follow(() -> List.of(new GrantPage(first, false)));
          assertThat(first.intAt(WORD)).isZero();
          ready.set(true);
          thread.follow(() -> List.of(new GrantPage(first, false)));
          assertThat(first.intAt(WORD)).isNotZero();
        });
  }

  /** Tenants read the page: it shows no address of this process. */
  @Test
  void nothingElseIsWritten() throws Exception {
    byte[] before = new byte[first.buffer().capacity()];
    first.buffer().get(0, before);
    byte[] after = new byte[before.length];
    onThread(
        () -> {
          thread(wake).follow(() -> List.of(new GrantPage(first, false)));
          first.buffer().get(0, after);
        });
    for (int at = 0; at < before.length; at++) {
      boolean own = at >= WORD && at < GRANT_MORE_OFFSET + GrantMore.SEAT_THREAD_OF + Long.BYTES;
      if (!own) {
        assertThat(after[at]).as("byte %d", at).isEqualTo(before[at]);
      }
    }
  }
}
