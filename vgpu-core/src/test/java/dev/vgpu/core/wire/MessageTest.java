package dev.vgpu.core.wire;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.vgpu.core.turn.UsageReading;
import dev.vgpu.request.Capabilities;
import dev.vgpu.request.GpuId;
import dev.vgpu.request.MemorySize;
import dev.vgpu.request.VirtualGpuRequest;
import dev.vgpu.testing.TestSeed;
import java.nio.ByteBuffer;
import java.util.List;
import java.util.Optional;
import java.util.OptionalDouble;
import java.util.Random;
import org.junit.jupiter.api.Test;

class MessageTest {
  private static final VirtualGpuRequest REQUEST =
      VirtualGpuRequest.builder().memory(MemorySize.ofMebibytes(1)).backend("kmod").build();
  private static final UsageReading USAGE =
      new UsageReading(1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, OptionalDouble.of(1.25));

  private static Message sent(Message message) {
    ByteBuffer bytes = message.encode();
    byte[] frame = new byte[bytes.getInt()];
    bytes.get(frame);
    assertThat(bytes.hasRemaining()).isFalse();
    return Message.decode(frame);
  }

  @Test
  void valuesArriveAsTheyWereSent() {
    Message message = sent(new Message("test").with("a", "ä\n=").with("n", -5).with("t", true));
    assertThat(message.type()).isEqualTo("test");
    assertThat(message.text("a")).isEqualTo("ä\n=");
    assertThat(message.number("n")).isEqualTo(-5);
    assertThat(message.flag("t")).isTrue();
    assertThat(message.find("b")).isEmpty();
    assertThatThrownBy(() -> message.text("b")).isInstanceOf(MalformedMessageException.class);
    assertThatThrownBy(() -> message.number("a")).isInstanceOf(MalformedMessageException.class);
  }

  @Test
  void longValueIsCutOff() {
    Message message = sent(new Message("test").with("a", "ü".repeat(100_000)));
    assertThat(message.text("a")).hasSize(20_000);
  }

  @Test
  void noiseIsRefusedAsSuch() {
    Random random = TestSeed.random();
    for (int i = 0; i < 2_000; i++) {
      byte[] noise = new byte[random.nextInt(200)];
      random.nextBytes(noise);
      assertThatThrownBy(() -> Message.decode(noise)).isInstanceOf(MalformedMessageException.class);
    }
  }

  @Test
  void damagedMessageIsReadOrRefusedAsSuch() {
    Random random = TestSeed.random();
    Message whole = new Message("test");
    LeaseValues.put(whole, "usage.", USAGE);
    byte[] bytes = whole.encode().array();
    for (int i = 0; i < 2_000; i++) {
      byte[] frame = java.util.Arrays.copyOfRange(bytes, 4, bytes.length);
      frame[random.nextInt(frame.length)] = (byte) random.nextInt();
      try {
        assertThat(LeaseValues.usage(Message.decode(frame), "usage.").calls()).isNotNegative();
      } catch (MalformedMessageException e) {
        assertThat(e).hasMessageMatching("(?s).+");
      }
    }
  }

  @Test
  void readingsArriveAsTheyWereSent() {
    LeaseSnapshot lease =
        new LeaseSnapshot(
            "vgpu-1",
            List.of(new GpuId("GPU-1"), new GpuId("GPU-2")),
            REQUEST,
            7,
            33.5,
            List.of(8L, 9L),
            USAGE,
            true,
            MemorySize.ofMebibytes(5),
            Optional.of("cuda-hook"),
            Optional.of("lost"),
            4,
            Optional.of(Capabilities.Preemption.BETWEEN_KERNELS),
            Optional.of("refused"));
    Message message = new Message("test");
    LeaseValues.putLeases(message, List.of(lease, lease));
    assertThat(LeaseValues.leases(sent(message)))
        .hasSize(2)
        .allSatisfy(read -> assertThat(read).usingRecursiveComparison().isEqualTo(lease));
  }
}
