package dev.vgpu.bench.gpucheck.rm;

import static org.assertj.core.api.Assertions.assertThat;

import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.util.Arrays;
import org.junit.jupiter.api.Test;

class GroupRecordsTest {
  private static final int MADE = 1;
  private static final int FREED = 2;
  private static final int SCHEDULED = 3;
  private static final int DISABLED = 4;
  private static final int CLOSED = 5;

  private static final int DEVICE = 0x80;
  private static final int SUBDEVICE = 0x2080;
  private static final int GROUP = 0xa06c;
  private static final int CHANNEL = 0xc86f;

  private final ByteBuffer out =
      ByteBuffer.allocate(20 * GroupRecords.BYTES).order(ByteOrder.LITTLE_ENDIAN);

  private GroupRecordsTest record(
      int kind, int fd, long file, int client, int parent, int object, int classNumber, int value) {
    out.putInt(kind).putInt(fd).putLong(file).putInt(client).putInt(parent).putInt(object);
    out.putInt(classNumber).putInt(value).putInt(0);
    return this;
  }

  private GroupRecords parsed() {
    return GroupRecords.parse(Arrays.copyOf(out.array(), out.position()));
  }

  private GroupRecordsTest program() {
    return record(MADE, 3, 1, 0xc1, 0, 0xc1, 0x41, 0)
        .record(MADE, 3, 1, 0xc1, 0xc1, 0xd0, DEVICE, 0)
        .record(MADE, 3, 1, 0xc1, 0xd0, 0xd1, SUBDEVICE, 0)
        .record(MADE, 3, 1, 0xc1, 0xd0, 0xa1, GROUP, 1)
        .record(MADE, 3, 1, 0xc1, 0xa1, 0xb1, CHANNEL, 0)
        .record(MADE, 3, 1, 0xc1, 0xa1, 0xb2, CHANNEL, 0);
  }

  @Test
  void handlesAreAsTheStopperReadsThem() {
    assertThat(program().parsed().handles())
        .isEqualTo(
            "3 c1 d0 c1 80\n3 c1 d1 d0 2080\n3 c1 a1 d0 a06c\n3 c1 b1 a1 c86f\n3 c1 b2 a1 c86f\n");
  }

  @Test
  void groupsAreCountedByTheirEngines() {
    program()
        .record(SCHEDULED, 3, 1, 0xc1, 0, 0xa1, 0, 1)
        .record(MADE, 3, 1, 0xc1, 0xd0, 0xa2, GROUP, 9)
        .record(MADE, 3, 1, 0xc1, 0xa2, 0xb3, CHANNEL, 0)
        .record(MADE, 3, 1, 0xc1, 0xd0, 0xb4, CHANNEL, 0)
        .record(DISABLED, 3, 1, 0xc1, 0, 0xb3, 0, 1);
    assertThat(parsed().summary())
        .isEqualTo(
            "11 records; engine 1: groups 1, scheduled 1, channels 2; engine 9: groups 1,"
                + " scheduled 0, channels 1; channels outside groups: 1");
  }

  @Test
  void scheduledChannelCountsForItsGroup() {
    assertThat(program().record(SCHEDULED, 3, 1, 0xc1, 0, 0xb2, 0, 1).parsed().summary())
        .contains("engine 1: groups 1, scheduled 1");
  }

  @Test
  void whatIsFreedOrClosedIsGone() {
    assertThat(program().record(FREED, 3, 1, 0xc1, 0, 0xa1, 0, 0).parsed().objects()).hasSize(2);
    assertThat(record(FREED, 3, 1, 0xc1, 0, 0xc1, 0, 0).parsed().objects()).isEmpty();
    program().record(CLOSED, 0, 1, 0, 0, 0, 0, 0);
    assertThat(parsed().objects()).isEmpty();
  }

  @Test
  void recordThatIsCutOffIsLeftOut() {
    program();
    byte[] bytes = Arrays.copyOf(out.array(), out.position() - 1);
    assertThat(GroupRecords.parse(bytes).records()).isEqualTo(5);
    assertThat(GroupRecords.parse(new byte[0]).summary())
        .isEqualTo("0 records; channels outside groups: 0");
  }
}
