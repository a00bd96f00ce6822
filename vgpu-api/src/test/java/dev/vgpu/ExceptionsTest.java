package dev.vgpu;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatNullPointerException;

import dev.vgpu.request.GpuId;
import dev.vgpu.request.MemorySize;
import dev.vgpu.request.VirtualGpuRequest;
import dev.vgpu.watch.GpuLease;
import dev.vgpu.watch.GpuUsage;
import java.io.ByteArrayInputStream;
import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.io.ObjectInputStream;
import java.io.ObjectOutputStream;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.OptionalDouble;
import org.junit.jupiter.api.Test;

class ExceptionsTest {
  private record Usage(Duration gpuTime, long calls, long preemptions, int running, int waiting)
      implements GpuUsage {
    @Override
    public OptionalDouble slowdown() {
      return OptionalDouble.empty();
    }

    @Override
    public MemorySize memoryUsed() {
      return MemorySize.ZERO;
    }

    @Override
    public int processes() {
      return 0;
    }

    @Override
    public long launches() {
      return 0;
    }

    @Override
    public long deniedAllocations() {
      return 0;
    }

    @Override
    public MemorySize memoryReserved() {
      return MemorySize.ZERO;
    }
  }

  private record Lease(String id, GpuId gpu, VirtualGpuRequest request, long pid, GpuUsage usage)
      implements GpuLease {
    @Override
    public double entitledPercent() {
      return 50;
    }

    @Override
    public List<Long> processes() {
      return List.of();
    }
  }

  private static final GpuLease HOLDER =
      new Lease(
          "embed-3",
          new GpuId("host"),
          VirtualGpuRequest.builder().memory(MemorySize.ofMebibytes(1)).build(),
          42,
          new Usage(Duration.ZERO, 0, 0, 0, 0));

  private static <T> T sentOver(T object) throws IOException, ClassNotFoundException {
    ByteArrayOutputStream bytes = new ByteArrayOutputStream();
    try (ObjectOutputStream out = new ObjectOutputStream(bytes)) {
      out.writeObject(object);
    }
    try (ObjectInputStream in =
        new ObjectInputStream(new ByteArrayInputStream(bytes.toByteArray()))) {
      @SuppressWarnings("unchecked")
      T read = (T) in.readObject();
      return read;
    }
  }

  @Test
  void refusalNamesTheHolders() {
    List<GpuLease> holders = new ArrayList<>(List.of(HOLDER));
    GpuCapacityException refused = new GpuCapacityException("no room", holders);
    holders.clear();
    assertThat(refused).hasMessage("no room").isInstanceOf(VgpuException.class).hasNoCause();
    assertThat(refused.holders()).containsExactly(HOLDER).isUnmodifiable();
    assertThatNullPointerException()
        .isThrownBy(() -> new GpuCapacityException("no room", null))
        .withMessage("holders");
  }

  @Test
  void refusalThatWasSentOverNamesNoHolders() throws Exception {
    GpuCapacityException refused = new GpuCapacityException("no room", List.of(HOLDER));
    GpuCapacityException read = sentOver(refused);
    assertThat(read).hasMessage("no room");
    assertThat(read.holders()).isEmpty();
    assertThat(refused.holders()).hasSize(1);
  }

  @Test
  void driversCodeIsInTheMessageAndCanBeRead() throws Exception {
    GpuDriverException failed = new GpuDriverException("cannot read the memory: gpu=0", 999);
    assertThat(failed).hasMessage("cannot read the memory: gpu=0 code=999").hasNoCause();
    assertThat(failed.code()).hasValue(999);
    assertThat(sentOver(failed).code()).hasValue(999);
    assertThat(new GpuDriverException("unknown", 0).code()).hasValue(0);
    assertThat(new GpuDriverException("unknown", -1).code()).hasValue(-1);
  }

  @Test
  void driverMayGiveNoCode() {
    IOException cause = new IOException("no such file");
    GpuDriverException failed = new GpuDriverException("cannot load the driver", cause);
    assertThat(failed).hasMessage("cannot load the driver").hasCause(cause);
    assertThat(failed.code()).isEmpty();
    assertThat(new GpuDriverException("cannot load the driver", null).code()).isEmpty();
  }

  @Test
  void othersKeepMessageAndCause() {
    IOException cause = new IOException("broken");
    assertThat(new VgpuException("failed", cause)).hasMessage("failed").hasCause(cause);
    assertThat(new VgpuException("failed", null)).hasMessage("failed").hasNoCause();
    assertThat(new VgpuException("failed"))
        .hasMessage("failed")
        .isInstanceOf(RuntimeException.class);
    assertThat(new GpuTimeoutException("too late"))
        .hasMessage("too late")
        .isInstanceOf(VgpuException.class);
  }
}
