package dev.vgpu.core.seat;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.mockito.Mockito.mock;
import static org.mockito.Mockito.withSettings;

import dev.vgpu.GpuPoolOptions;
import dev.vgpu.VgpuException;
import dev.vgpu.core.NanoClock;
import dev.vgpu.core.book.PoolSettings;
import dev.vgpu.core.disk.ProcessIdentity;
import dev.vgpu.core.node.Node;
import dev.vgpu.core.wire.Link;
import dev.vgpu.core.wire.Message;
import java.time.Instant;
import java.util.Optional;
import java.util.concurrent.FutureTask;
import java.util.concurrent.atomic.AtomicInteger;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.mockito.invocation.InvocationOnMock;

/** How long a client waits for the seat. */
@Timeout(60)
class SeatCallsTest {
  private static final int TIMES = 500;

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
                assertThat(call.settle(new Message(Protocol.REPLY), null)).isTrue();
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

  /** While the call waits for the first time, its process is stopped for long. */
  private static final class StoppedOnce implements NanoClock {
    private final Thread waits = Thread.currentThread();
    SeatCalls.@Nullable Call call;
    private int looks;

    @Override
    public long nanoTime() {
      SeatCalls.Call asked = call;
      if (asked == null || Thread.currentThread() != waits) {
        return 0;
      }
      looks++;
      if (looks == 3) {
        assertThat(asked.settle(new Message(Protocol.REPLY), null)).isTrue();
      }
      return looks == 1 ? 0 : 20_000_000_000L;
    }

    @Override
    public Instant now() {
      return Instant.EPOCH;
    }
  }

  /** The reply came meanwhile, and the thread that reads it was stopped too. */
  @Test
  void aProcessThatWasStoppedForLongReadsTheReplyThatCameMeanwhile() {
    StoppedOnce clock = new StoppedOnce();
    Node node = new Node(PoolSettings.from(GpuPoolOptions.defaults()), clock, ended -> {});
    SeatCalls.Call call =
        new SeatCalls(node, Optional.empty(), lost -> {})
            .begin(new Message(Protocol.ACQUIRE), this);
    clock.call = call;
    assertThat(call.answer(1_000_000).type()).isEqualTo(Protocol.REPLY);
  }

  private void askWelcome(long mostMs) {
    Message ignored = calls.askBusy(new Message(Protocol.HELLO), 1_000_000, mostMs * 1_000_000);
  }

  @Test
  void aHolderThatRunsHasMoreTimeThanOneThatIsNotKnown() {
    assertThatThrownBy(() -> askWelcome(Long.MAX_VALUE / 1_000_000))
        .hasMessageContaining("has not answered");
    calls.heldBy(ProcessIdentity.current());
    assertThatThrownBy(() -> askWelcome(100))
        .hasMessageMatching(".* within [0-9]{3,} ms: .*state=ALIVE.*");
  }

  /** A reply and the end of the waiting meet: whoever has the lease gives it back, and only one. */
  @Test
  void aLeaseThatIsGrantedAtTheMomentOfACancelIsGivenBackOrReturned() throws Exception {
    AtomicInteger givenBack = new AtomicInteger();
    Link link = mock(withSettings().stubOnly().defaultAnswer(sent -> count(sent, givenBack)));
    calls.speakThrough(link);
    for (int i = 0; i < TIMES; i++) {
      givenBack.set(0);
      SeatCalls.Call call = calls.begin(new Message(Protocol.ACQUIRE), this);
      Message reply = new Message(Protocol.REPLY).with(Protocol.LEASE, "a");
      AtomicInteger come = new AtomicInteger();
      FutureTask<Integer> granted =
          new FutureTask<>(
              () -> {
                meet(come);
                calls.received(link, reply.with(Protocol.NUMBER, call.number()));
                return 0;
              });
      new Thread(granted).start();
      meet(come);
      calls.fail(this, new IllegalStateException("closed"));
      assertThat(granted.get()).isZero();
      assertThat(givenBack).hasValue(isReturned(call) ? 0 : 1);
    }
  }

  /** Both threads go on at once: one that is woken would come too late. */
  private static void meet(AtomicInteger come) {
    come.incrementAndGet();
    while (come.get() < 2) {
      Thread.onSpinWait();
    }
  }

  private static @Nullable Object count(InvocationOnMock sent, AtomicInteger givenBack) {
    if (sent.getArguments().length == 1
        && sent.getArgument(0) instanceof Message message
        && message.type().equals(Protocol.CLOSE)) {
      givenBack.incrementAndGet();
    }
    return null;
  }

  private static boolean isReturned(SeatCalls.Call call) {
    try {
      return call.answer(1).find(Protocol.LEASE).isPresent();
    } catch (IllegalStateException e) {
      return false;
    }
  }
}
