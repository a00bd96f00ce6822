package dev.vgpu.core.pool;

import static dev.vgpu.request.PreemptionClass.NEARLINE;
import static java.util.stream.Collectors.toSet;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.vgpu.GpuCapacityException;
import dev.vgpu.VirtualGpu;
import dev.vgpu.request.MemorySize;
import dev.vgpu.request.VirtualGpuRequest;
import dev.vgpu.watch.GpuLease;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.atomic.AtomicInteger;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** The process that holds the seat has more virtual GPUs than one message can list. */
@Timeout(60)
class ManyLeasesTest extends TwoPools {
  private static final int LEASES = 2_200;
  private static final int GPUS = 3;

  ManyLeasesTest() {
    super(GPUS);
  }

  private static VirtualGpuRequest of(int mebibytes) {
    return Pools.request(NEARLINE).memory(MemorySize.ofMebibytes(mebibytes)).build();
  }

  @Test
  void anotherProcessListsThemAllAndIsToldOfSome() {
    List<VirtualGpu> held = new ArrayList<>();
    for (int i = 0; i < LEASES; i++) {
      held.add(holder.acquire(of(1)));
    }
    assertThat(client.leases().stream().map(GpuLease::id).collect(toSet()))
        .isEqualTo(held.stream().map(VirtualGpu::id).collect(toSet()));
    AtomicInteger read = new AtomicInteger();
    assertThat(held.get(0).environment()).isNotEmpty(); // its backend has a part in it
    backend.leases.get(held.get(0).id()).passedThrough = read::incrementAndGet;
    assertThat(client.leases()).hasSize(LEASES);
    assertThat(read).as("how often the list's parts have read one lease").hasValue(1);
    assertThatThrownBy(() -> client.acquire(of(1000)))
        .isInstanceOfSatisfying(
            GpuCapacityException.class,
            refusal -> assertThat(refusal.holders()).hasSizeBetween(1, LEASES / GPUS));
  }
}
