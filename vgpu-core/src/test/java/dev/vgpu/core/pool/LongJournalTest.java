package dev.vgpu.core.pool;

import static java.nio.charset.StandardCharsets.ISO_8859_1;
import static org.assertj.core.api.Assertions.assertThat;

import dev.vgpu.VirtualGpu;
import dev.vgpu.testing.Frames;
import dev.vgpu.watch.UsageRecord;
import java.io.IOException;
import java.lang.management.ManagementFactory;
import java.net.UnixDomainSocketAddress;
import java.nio.channels.SocketChannel;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Instant;
import java.util.ArrayList;
import java.util.HexFormat;
import java.util.List;
import java.util.concurrent.FutureTask;
import java.util.zip.CRC32C;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** The records of very many virtual GPUs that have ended, and clients that read them. */
@Timeout(120)
class LongJournalTest extends TwoPools {
  private static final long MOST_HEAP_BYTES = 64 << 20;
  private static final int CLIENTS = 40;

  /** Writes files as a seat does, with one record for each virtual GPU. */
  private void fill(int files, int recordsOfEach) throws IOException {
    for (int file = 0; file < files; file++) {
      StringBuilder lines = new StringBuilder();
      for (int i = 0; i < recordsOfEach; i++) {
        int number = file * recordsOfEach + i;
        long atMs = 1_700_000_000_000L + number;
        String values =
            "1 past-" + (1_000_000 + number) + " past GPU-1 " + atMs + " " + (atMs + 1) + " 1";
        values += " 5 0 1 0 0 0".repeat(3);
        CRC32C checksum = new CRC32C();
        checksum.update(values.getBytes(ISO_8859_1));
        String digits = HexFormat.of().toHexDigits((int) checksum.getValue());
        lines.append('#').append(digits).append(' ').append(values).append('\n');
      }
      Path usage = directory.resolve("usage");
      Files.createDirectories(usage);
      Files.writeString(usage.resolve("usage-" + (1 + file) + ".log"), lines);
    }
  }

  private static long heapBytes() {
    System.gc(); // frees what is not held
    return ManagementFactory.getMemoryMXBean().getHeapMemoryUsage().getUsed();
  }

  private SocketChannel connect() throws IOException {
    SocketChannel channel =
        SocketChannel.open(UnixDomainSocketAddress.of(directory.resolve("seat.sock")));
    channel.write(Frames.hello("a guess"));
    assertThat(Frames.read(channel)).contains("settings.");
    return channel;
  }

  @Test
  void allRecordsAreReadInTheirOrderInParts() throws Exception {
    fill(2, 1_300);
    VirtualGpu gpu = client.acquire(Pools.share(dev.vgpu.request.PreemptionClass.NEARLINE, 10));
    List<String> ids =
        client.usageSince(Instant.EPOCH).stream().map(UsageRecord::virtualGpu).toList();
    assertThat(ids).hasSize(2_601).isSorted().doesNotHaveDuplicates().endsWith(gpu.id());
    assertThat(holder.usageSince(Instant.EPOCH)).map(UsageRecord::virtualGpu).isEqualTo(ids);
    assertThat(client.usageSince(Instant.ofEpochMilli(1_700_000_000_600L))).hasSize(2_001);
  }

  @Test
  void clientsThatReadManyRecordsMakeTheSeatHoldFewAndHoldUpNobody() throws Exception {
    fill(6, 30_000);
    List<SocketChannel> channels = new ArrayList<>();
    for (int i = 0; i < CLIENTS; i++) {
      channels.add(connect());
    }
    long beforeBytes = heapBytes();
    for (SocketChannel channel : channels) {
      channel.write(
          Frames.of(
              "type", "metered", "number", "2", "since", "1970-01-01T00:00:00Z", "from", "0"));
    }
    FutureTask<String> answered = new FutureTask<>(() -> Frames.read(channels.get(0)));
    new Thread(answered).start();
    long mostBytes = 0;
    int others = 0;
    do {
      assertThat(client.leases()).isEmpty();
      others++;
      if (Integer.bitCount(others) == 1) { // collecting at each look would leave no time to read
        mostBytes = Math.max(mostBytes, heapBytes() - beforeBytes);
      }
    } while (!answered.isDone());
    assertThat(answered.get()).contains("past-1000000");
    System.out.println(
        "readers of many records: heap held in bytes=" + mostBytes + " others answered=" + others);
    assertThat(mostBytes).isLessThan(MOST_HEAP_BYTES);
    for (SocketChannel channel : channels) {
      channel.close();
    }
  }
}
