package dev.vgpu.core.pool;

import static org.assertj.core.api.Assertions.assertThat;

import dev.vgpu.core.NanoClock;
import dev.vgpu.core.disk.ProcessIdentity;
import dev.vgpu.core.pool.SeatProcesses.Child;
import java.io.RandomAccessFile;
import java.nio.channels.FileLock;
import java.util.List;
import java.util.concurrent.locks.LockSupport;
import org.junit.jupiter.api.Test;

/**
 * The process that holds the seat is stopped as a whole. No other process takes the seat over: the
 * stopped process could continue at any instruction, before it can check whether it still holds the
 * seat. Its clients keep running, are told what is wrong, and lose nothing.
 */
class StoppedSeatIT {
  /** Longer than the next holder of the seat waits for a living process. */
  private static final long LONG_MS = 11_000;

  @Test
  void stoppedSeatKeepsTheSeatAndNobodyIsLost() throws Exception {
    try (SeatProcesses node = new SeatProcesses()) {
      Child holder = node.start();
      Child client = node.start();
      Child dies = node.start();
      String here = holder.ask("acquire here 20");
      String there = client.ask("acquire there 20");
      String lost = dies.ask("acquire lost 20");
      startWork(holder, here);
      startWork(client, there);
      awaitProgress(client, there);

      stop(holder);
      awaitProgress(client, there);
      assertSaysWhatToDo(client.ask("leases"), holder);
      assertSaysWhatToDo(node.begin().read(), holder); // a pool opened in the meantime
      assertNobodyElseHasTheSeat(node, holder);
      dies.kill();

      signal("CONT", holder);
      awaitLeases(holder, here, there);
      assertThat(node.lease(lost)).doesNotExist();
      assertThat(node.holder()).isSameAs(holder);
      String late = node.start().ask("acquire late 60");
      assertThat(late).startsWith("late-");
      awaitLeases(client, here, there, late);
      assertWorks(holder, here);
      assertWorks(client, there);
    }
  }

  @Test
  void stoppedSeatThatIsEndedIsTakenOverFrom() throws Exception {
    try (SeatProcesses node = new SeatProcesses()) {
      Child holder = node.start();
      Child client = node.start();
      Child other = node.start();
      String here = holder.ask("acquire here 30");
      String there = client.ask("acquire there 30");
      startWork(client, there);
      stop(holder);
      awaitProgress(client, there);
      other.send("leases"); // waits for the holder
      signal("KILL", holder);
      assertThat(other.read().split(" ")).contains(there);
      awaitLeases(client, there);
      assertThat(node.lease(here)).doesNotExist();
      assertThat(List.of(client, other)).contains(node.holder());
      assertThat(other.ask("acquire late 70")).startsWith("late-");
      assertWorks(client, there);
    }
  }

  @Test
  void seatStoppedBeforeItsClientsAreBackLosesNone() throws Exception {
    try (SeatProcesses node = new SeatProcesses()) {
      Child first = node.start();
      Child next = node.start();
      Child client = node.start();
      Child greedy = node.start();
      String there = client.ask("acquire there 30");
      startWork(client, there);
      awaitProgress(client, there);
      stop(client); // so that the next holder waits for it
      first.kill();
      awaitLeases(next, there);
      assertThat(List.of(next, greedy)).contains(node.holder());
      Child seat = node.holder();
      // Would get the share if the client lost it.
      (seat == next ? greedy : next).send("acquire greedy 80");
      stop(seat);
      signal("CONT", client);
      long untilNs = NanoClock.SYSTEM.nanoTime() + LONG_MS * 1_000_000;
      do {
        assertSaysWhatToDo(node.begin().read(), seat);
      } while (NanoClock.SYSTEM.nanoTime() - untilNs < 0);
      assertNobodyElseHasTheSeat(node, seat);
      signal("CONT", seat);
      assertComesBack(seat, client, there);
    }
  }

  @Test
  void clientThatIsStoppedForLongComesBackToTheNextSeat() throws Exception {
    try (SeatProcesses node = new SeatProcesses()) {
      Child first = node.start();
      Child next = node.start();
      Child client = node.start();
      Child greedy = node.start();
      String there = client.ask("acquire there 30");
      startWork(client, there);
      awaitProgress(client, there);
      stop(client);
      first.kill();
      awaitLeases(next, there);
      greedy.send("acquire greedy 80"); // would get the share if the client lost it
      assertThat(next.ask("sleep " + LONG_MS)).isEqualTo("slept");
      signal("CONT", client);
      assertComesBack(next, client, there);
    }
  }

  private static void assertComesBack(Child seat, Child client, String id) {
    awaitLeases(client, id); // is answered only after it has claimed its leases
    awaitProgress(client, id);
    awaitLeases(seat, id);
    assertWorks(client, id);
  }

  private static void assertSaysWhatToDo(String answer, Child holder) {
    assertThat(answer)
        .startsWith("failed")
        .contains("pid=" + holder.process.pid() + " ", "state=STOPPED")
        .contains("kill -CONT " + holder.process.pid());
  }

  private static void assertNobodyElseHasTheSeat(SeatProcesses node, Child holder)
      throws Exception {
    assertThat(node.holder()).isSameAs(holder);
    try (RandomAccessFile file =
            new RandomAccessFile(node.directory.resolve("seat.lock").toFile(), "rw");
        FileLock lock = file.getChannel().tryLock()) {
      assertThat(lock).isNull();
    }
  }

  private static void startWork(Child child, String id) {
    assertThat(child.ask("work " + id + " 300")).isEqualTo("working");
  }

  private static void assertWorks(Child child, String id) {
    awaitProgress(child, id);
    assertThat(child.ask("failure " + id)).isEmpty();
  }

  private static void awaitProgress(Child child, String id) {
    long before = child.number("calls " + id);
    while (child.number("calls " + id) < before + 20) {
      assertThat(child.ask("failure " + id)).isEmpty();
      LockSupport.parkNanos(1_000_000);
    }
  }

  /** Waits until the leases are exactly these: a death is noticed a moment later. */
  private static void awaitLeases(Child child, String... ids) {
    List<String> wanted = List.of(ids);
    List<String> found;
    do {
      LockSupport.parkNanos(1_000_000);
      String answer = child.ask("leases");
      assertThat(answer).doesNotStartWith("failed");
      found = List.of(answer.split(" "));
      assertThat(found).containsAll(wanted);
    } while (found.size() > wanted.size());
  }

  private static void stop(Child child) throws Exception {
    signal("STOP", child);
    ProcessIdentity process = ProcessIdentity.of(child.process.pid());
    while (process.state() != ProcessIdentity.State.STOPPED) {
      LockSupport.parkNanos(1_000_000);
    }
  }

  private static void signal(String name, Child child) throws Exception {
    Process kill =
        new ProcessBuilder("sh", "-c", "kill -" + name + " " + child.process.pid()).start();
    assertThat(kill.waitFor()).isZero();
  }
}
