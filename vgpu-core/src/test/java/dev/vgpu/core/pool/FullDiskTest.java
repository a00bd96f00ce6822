package dev.vgpu.core.pool;

import static dev.vgpu.request.PreemptionClass.NEARLINE;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.vgpu.VgpuException;
import dev.vgpu.VirtualGpu;
import dev.vgpu.watch.GpuLease;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.List;
import java.util.stream.Stream;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/**
 * The run directory's disk is full: this process may write only few bytes into a file meanwhile.
 */
@Timeout(180)
class FullDiskTest extends TwoPools {
  private static final Duration LONG = Duration.ofSeconds(30);

  private static void limit(String bytes) throws Exception {
    Process sets =
        new ProcessBuilder(
                "prlimit", "--pid", "" + ProcessHandle.current().pid(), "--fsize=" + bytes + ":")
            .inheritIO()
            .start();
    assertThat(sets.waitFor()).isZero();
  }

  private static void fill() throws Exception {
    limit("32"); // enough to count up, but not for a record
  }

  @AfterEach
  void free() throws Exception {
    limit("unlimited");
  }

  private List<String> onDisk() throws IOException {
    try (Stream<Path> all = Files.list(directory.resolve("leases"))) {
      return all.filter(Files::isDirectory).map(each -> each.getFileName().toString()).toList();
    }
  }

  private boolean isSuspended() {
    return client.leases().stream().allMatch(GpuLease::isSuspended);
  }

  @Test
  void whatCannotBeSuspendedGoesOnAndIsSuspendedOnceThereIsRoom() throws Exception {
    VirtualGpu gpu = client.acquire(Pools.request(NEARLINE).build());
    fill();
    assertThatThrownBy(() -> gpu.suspend(LONG))
        .isInstanceOf(VgpuException.class)
        .hasMessageContaining("the lease cannot be written: path=");
    assertThat(isSuspended()).isFalse();
    assertThat(gpu.call(() -> 42)).isEqualTo(42);
    free();
    gpu.suspend(LONG);
    assertThat(isSuspended()).isTrue();
    gpu.resume(LONG);
    assertThat(gpu.call(() -> 42)).isEqualTo(42);
  }

  /** The next holder of the seat reads that it is suspended, and that this is over. */
  @Test
  void whatIsResumedOnAFullDiskGoesOnAtTheNextHolder() throws Exception {
    VirtualGpu gpu = client.acquire(Pools.request(NEARLINE).build());
    gpu.suspend(LONG);
    fill();
    gpu.resume(LONG);
    assertThat(isSuspended()).isFalse();
    assertThat(gpu.call(() -> 42)).isEqualTo(42);
    holder.close();
    assertThat(isSuspended()).isFalse();
    assertThat(gpu.call(() -> 42)).isEqualTo(42);
    free();
    gpu.suspend(LONG);
    gpu.resume(LONG);
    assertThat(gpu.call(() -> 42)).isEqualTo(42);
    holder = open();
  }

  @Test
  void whatCannotBeGrantedLeavesNothingOnTheDisk() throws Exception {
    VirtualGpu gpu = client.acquire(Pools.request(NEARLINE).build());
    fill();
    for (int i = 0; i < 3; i++) {
      assertThatThrownBy(() -> client.acquire(Pools.request(NEARLINE).build()))
          .isInstanceOf(VgpuException.class)
          .hasMessageContaining("the lease cannot be written: path=");
    }
    assertThat(onDisk()).containsExactly(gpu.id());
    free();
    assertThat(client.acquire(Pools.request(NEARLINE).build()).call(() -> 42)).isEqualTo(42);
  }
}
