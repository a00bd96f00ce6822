package dev.vgpu.cuda.hook;

import static org.assertj.core.api.Assertions.assertThat;

import dev.vgpu.cuda.layout.ShmLayout;
import dev.vgpu.testing.TestSeed;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.Random;
import org.junit.jupiter.api.Test;

/** Random messages, as a hostile program may send them. */
class HookMessageFuzzTest {
  private static final int ROUNDS = 100_000;

  @Test
  void anyBytesAreAMessageWhoseTextsFitTheirFields() {
    Random random = TestSeed.random();
    byte[] bytes = new byte[ShmLayout.Message.BYTES];
    for (int i = 0; i < ROUNDS; i++) {
      random.nextBytes(bytes);
      if (random.nextBoolean()) { // text with a terminator near its start
        bytes[ShmLayout.Message.LEASE + random.nextInt(8)] = 0;
      }
      HookMessage read = HookMessage.read(ByteBuffer.wrap(bytes));
      HookMessage again = HookMessage.read(read.bytes());
      assertThat(again.type()).isEqualTo(read.type());
      assertThat(again.pid()).isEqualTo(read.pid()).isBetween(0L, 0xffff_ffffL);
      assertThat(again.lease().getBytes(StandardCharsets.UTF_8).length)
          .isLessThanOrEqualTo(3 * ShmLayout.Message.LEASE_LENGTH);
    }
  }
}
