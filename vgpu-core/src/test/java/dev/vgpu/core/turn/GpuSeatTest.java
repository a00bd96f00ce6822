package dev.vgpu.core.turn;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.vgpu.core.NanoClock;
import dev.vgpu.core.schedule.TurnStepper;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.FutureTask;
import java.util.concurrent.atomic.AtomicBoolean;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** The seat of a GPU whose threads meet errors, and gates of processes that were stopped. */
@Timeout(60)
class GpuSeatTest {
  private final SeatThread thread = new SeatThread(NanoClock.SYSTEM);
  private final GpuSeat seat = new GpuSeat(NanoClock.SYSTEM, thread);

  @AfterEach
  void end() {
    thread.close();
  }

  /** The stepper is asked after the step, where no failure is expected. */
  @Test
  void isLeftWhateverFails() throws Exception {
    seat.take();
    seat.follow(
        new TurnStepper() {
          @Override
          public int doWork(long nowNs) {
            return 0;
          }

          @Override
          public long nextWakeNs() {
            throw new StackOverflowError();
          }
        });
    assertThatThrownBy(seat::stepAndLeave).isInstanceOf(StackOverflowError.class);
    FutureTask<Boolean> another =
        new FutureTask<>(
            () -> {
              seat.take();
              seat.leave();
              return true;
            });
    new Thread(another).start();
    assertThat(another.get()).isTrue();
  }

  @Test
  void theTurnOfAProcessThatWasStoppedAndConnectsAgainEnds() {
    AtomicBoolean stopped = new AtomicBoolean();
    RemoteGate gate = new RemoteGate("a", seat, 1_000_000, stopped::get);
    List<String> orders = new ArrayList<>();
    Orders to = new Orders(orders);
    gate.connected(to, 0, false, true, UsageReading.NONE);
    seat.take();
    gate.open();
    assertThat(gate.shut()).isFalse();
    stopped.set(true);
    assertThat(gate.isAbandoned()).isTrue();
    seat.leave();
    stopped.set(false);
    assertThat(orders).containsExactly("open 1", "shut 1");

    gate.disconnected(); // before its report of the end arrives
    gate.connected(to, 1, true, false, UsageReading.NONE);
    seat.take();
    assertThat(gate.shut()).isFalse(); // its call runs
    seat.leave();
    gate.drained(1, false, UsageReading.NONE);
    seat.take();
    assertThat(gate.shut()).isTrue();
    seat.leave();
  }

  private record Orders(List<String> given) implements RemoteGate.Orders {
    @Override
    public void open(String lease, long turn, boolean contended) {
      given.add("open " + turn);
    }

    @Override
    public void shut(String lease, long turn) {
      given.add("shut " + turn);
    }

    @Override
    public void preempt(String lease, long turn) {
      given.add("preempt " + turn);
    }

    @Override
    public void contended(String lease, boolean contended) {
      given.add("contended " + contended);
    }
  }
}
