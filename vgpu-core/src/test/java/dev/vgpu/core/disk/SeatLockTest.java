package dev.vgpu.core.disk;

import static org.assertj.core.api.Assertions.assertThat;

import java.nio.file.Files;
import java.nio.file.Path;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

class SeatLockTest {
  private final ProcessIdentity self = ProcessIdentity.current();
  @TempDir Path temporary;

  @Test
  void secondTryFindsItTakenAndDoesNotDropIt() throws Exception {
    Path file = temporary.resolve("seat.lock");
    SeatLock lock = SeatLock.tryTake(file, self).lock();
    assertThat(lock).isNotNull();
    for (int i = 0; i < 3; i++) {
      assertThat(SeatLock.tryTake(file, self).lock()).isNull();
    }
    assertThat(Files.readString(SeatLock.holderFile(file))).isEqualTo(self + "\n");
    lock.close();
    lock.close();
    SeatLock again = SeatLock.tryTake(file, self).lock();
    assertThat(again).isNotNull();
    again.close();
  }

  @Test
  void lockHoldsWhereItsHolderCannotBeWritten() throws Exception {
    Path file = temporary.resolve("seat.lock");
    Files.createDirectories(temporary.resolve("seat.holder").resolve("in the way"));
    SeatLock.Outcome outcome = SeatLock.tryTake(file, self);
    assertThat(outcome.lock()).isNotNull();
    assertThat(SeatLock.tryTake(file, self).lock()).isNull();
    outcome.lock().close();
  }

  @Test
  void holderIsWrittenOverTheLastOneWhereNoFileCanBeMade() throws Exception {
    Path file = temporary.resolve("seat.lock");
    Files.writeString(SeatLock.holderFile(file), "pid=1 start=23456789012345678\n");
    Files.createDirectories(temporary.resolve("seat.holder.new").resolve("in the way"));
    SeatLock.Outcome outcome = SeatLock.tryTake(file, self);
    assertThat(outcome.lock()).isNotNull();
    assertThat(Files.readString(SeatLock.holderFile(file)).strip()).isEqualTo(self.toString());
    assertThat(SeatLock.tryTake(file, self).holder()).contains(self);
    outcome.lock().close();
  }
}
