package dev.vgpu.cuda.hook;

import static dev.vgpu.cuda.layout.ShmLayout.LAYOUT_MAJOR;
import static dev.vgpu.cuda.layout.ShmLayout.MESSAGE_HELLO;
import static dev.vgpu.cuda.layout.ShmLayout.MESSAGE_VERSION;
import static dev.vgpu.cuda.layout.ShmLayout.NO_SLOT;
import static org.assertj.core.api.Assertions.assertThat;
import static org.mockito.Mockito.mock;

import dev.vgpu.cuda.pages.GrantPage;
import dev.vgpu.cuda.pages.LeasePages;
import dev.vgpu.cuda.process.ProcFiles;
import dev.vgpu.request.PreemptionClass;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Objects;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/**
 * A container's process after a takeover of the seat, which knows it by its pid in the container.
 */
class SlotTableTest {
  private static final long MS = 1_000_000;
  private static final long CONTAINER = 7;
  private static final long PID_INSIDE = 5;
  private static final long START = 1_234;

  @TempDir private Path directory;
  @TempDir private Path proc;
  private SlotTable slots;
  private long nowNs = 1_000 * MS;

  @BeforeEach
  void attachAndTakeOver() throws IOException {
    Files.createDirectories(proc.resolve("self/ns"));
    Files.createSymbolicLink(proc.resolve("self/ns/pid"), Path.of("pid:[1]"));
    assertThat(table().attach(hello(NO_SLOT), nowNs)).isNotNull();
    slots = table();
    assertThat(slots.count()).isOne();
  }

  private static HookMessage hello(int slot) {
    return new HookMessage(
        MESSAGE_HELLO,
        MESSAGE_VERSION,
        slot,
        0,
        PID_INSIDE,
        LAYOUT_MAJOR,
        START,
        CONTAINER,
        "a",
        "");
  }

  private SlotTable table() {
    LeasePages pages = LeasePages.in(directory, null);
    GrantPage grant = new GrantPage(pages.grant(), false);
    ProcFiles life = new ProcFiles(proc);
    return new SlotTable(
        pages,
        new LeaseExpress("a", null, grant, PreemptionClass.OFFLINE),
        new LeaseMappings("a", life, () -> nowNs, Runnable::run),
        life,
        nowNs);
  }

  /** Process 70 on the node is process 5 in its container. */
  private void process(String lease) throws IOException {
    Path process = Files.createDirectories(proc.resolve("70"));
    Files.writeString(process.resolve("status"), "Name:\tp\nNSpid:\t70\t9\t5\nVmRSS:\t5 kB\n");
    Files.writeString(process.resolve("stat"), "70 (p) S" + " 0".repeat(18) + " " + START + " 0");
    Files.writeString(process.resolve("maps"), "1-2 rw-s 0 0:2 1 /leases/" + lease + "/report\n");
  }

  private void passes(int milliseconds) {
    for (int i = 0; i < milliseconds; i++) {
      nowNs += MS;
      slots.observe(nowNs, true);
    }
  }

  @Test
  void whoHasEndedLosesItsSlotAfterTwoSeconds() {
    passes(2_000);
    assertThat(slots.count()).isOne();
    passes(30);
    assertThat(slots.count()).isZero();
  }

  @Test
  void whoHasLeftTheLeaseLosesItToo() throws IOException {
    process("b");
    passes(2_030);
    assertThat(slots.count()).isZero();
  }

  @Test
  void whoHasTheLeasesPageKeepsItsSlotUntilItEnds() throws IOException {
    process("a"); // it may be stopped, or its container paused
    passes(60_000);
    assertThat(slots.count()).isOne();
    Files.delete(proc.resolve("70/stat"));
    passes(30);
    assertThat(slots.count()).isZero();
  }

  @Test
  void timeInWhichTheSeatWasStoppedDoesNotCount() {
    passes(10);
    nowNs += 60_000 * MS;
    passes(1_900);
    assertThat(slots.count()).isOne();
    passes(200);
    assertThat(slots.count()).isZero();
  }

  private void loseSocket(boolean welcomed) {
    SeatSlot slot = Objects.requireNonNull(slots.attached(hello(1)));
    SeatSlot.Socket connection = mock();
    slot.connection = connection;
    slot.welcomed = welcomed;
    slots.disconnected(slot, connection, nowNs);
  }

  @Test
  void whoLosesItsSocketAndHasThePageKeepsItsSlotUntilItEnds() throws IOException {
    process("a"); // it has closed all its files, say, and works on
    loseSocket(true);
    passes(60_000);
    assertThat(slots.count()).isOne();
    Files.delete(proc.resolve("70/stat"));
    passes(60);
    assertThat(slots.count()).isZero();
  }

  @Test
  void whoEndsLosesItsSlotAtOnce() {
    loseSocket(true);
    passes(30);
    assertThat(slots.count()).isZero();
  }

  @Test
  void whoHasNotReadItsWelcomeMayReturn() {
    loseSocket(false);
    passes(2_000);
    assertThat(slots.count()).isOne();
    passes(30);
    assertThat(slots.count()).isZero();
  }
}
