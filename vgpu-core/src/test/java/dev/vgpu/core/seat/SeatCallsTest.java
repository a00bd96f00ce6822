package dev.vgpu.core.seat;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.vgpu.GpuPoolOptions;
import dev.vgpu.VgpuException;
import dev.vgpu.core.NanoClock;
import dev.vgpu.core.book.PoolSettings;
import dev.vgpu.core.node.Node;
import dev.vgpu.core.wire.Message;
import java.util.Optional;
import java.util.concurrent.atomic.AtomicInteger;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** How long a client waits for the seat. */
@Timeout(60)
class SeatCallsTest {
  private final SeatCalls calls =
      new SeatCalls(
          new Node(PoolSettings.from(GpuPoolOptions.defaults()), NanoClock.SYSTEM, ended -> {}),
          Optional.empty(),
          lost -> {});

  @Test
  void aLongRequestIsWaitedForAsLongAsTheSeatAnswersOthers() {
    SeatCalls.Call call = calls.begin(new Message(Protocol.ACQUIRE), this);
    AtomicInteger asked = new AtomicInteger();
    Message answer =
        call.answer(
            1_000_000,
            () -> {
              if (asked.incrementAndGet() == 3) {
                call.settle(new Message(Protocol.REPLY), null);
              }
            });
    assertThat(answer.type()).isEqualTo(Protocol.REPLY);
    assertThat(asked).hasValue(3);
  }

  @Test
  void aLongRequestToASeatThatAnswersNothingFails() {
    SeatCalls.Call call = calls.begin(new Message(Protocol.ACQUIRE), this);
    assertThatThrownBy(
            () ->
                call.answer(
                    1_000_000,
                    () -> {
                      Message ignored = calls.ask(new Message("states"), 1_000_000);
                    }))
        .isInstanceOf(VgpuException.class)
        .hasMessageContaining("has not answered within 1 ms");
  }
}
