package dev.vgpu.memory;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatExceptionOfType;
import static org.mockito.ArgumentMatchers.any;
import static org.mockito.Mockito.mock;
import static org.mockito.Mockito.verify;
import static org.mockito.Mockito.when;

import dev.vgpu.GpuCapacityException;
import dev.vgpu.MemoryReservation;
import dev.vgpu.VirtualGpu;
import dev.vgpu.request.MemorySize;
import dev.vgpu.request.VirtualGpuRequest;
import dev.vgpu.watch.GpuUsage;
import java.util.Optional;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;

class ModelWeightsTest {
  private static final MemorySize QUOTA = MemorySize.ofBytes(1000);

  private final VirtualGpu gpu = mock(VirtualGpu.class);
  private final GpuUsage usage = mock(GpuUsage.class);

  @BeforeEach
  void grant() {
    when(gpu.request()).thenReturn(VirtualGpuRequest.builder().memory(QUOTA).build());
    when(gpu.usage()).thenReturn(usage);
    when(gpu.id()).thenReturn("embed-1");
    when(usage.memoryReserved()).thenReturn(MemorySize.ZERO);
  }

  private MemoryReservation answerWith(long bytes) {
    MemoryReservation reservation = mock(MemoryReservation.class);
    when(reservation.size()).thenReturn(MemorySize.ofBytes(bytes));
    when(gpu.tryReserve(any())).thenReturn(Optional.of(reservation));
    return reservation;
  }

  @Test
  void callsHaveWhatNoModelHolds() {
    ModelWeights one = new ModelWeights(gpu, "one");
    ModelWeights other = new ModelWeights(gpu, "other");
    assertThat(one.leftForCalls()).isEqualTo(1000);
    MemoryReservation held = answerWith(300);
    one.reserve(300);
    answerWith(200);
    other.reserve(200);
    assertThat(one.leftForCalls()).isEqualTo(500);
    one.close();
    verify(held).close();
    assertThat(other.leftForCalls()).isEqualTo(800);
    one.close();
    assertThat(other.leftForCalls()).isEqualTo(800);
    other.close();
    assertThat(one.leftForCalls()).isEqualTo(1000);
  }

  @Test
  void aCallIsNeverLeftWithNothing() {
    ModelWeights weights = new ModelWeights(gpu, "full");
    answerWith(1000);
    weights.reserve(1000);
    assertThat(weights.leftForCalls()).isEqualTo(1);
    weights.close();
  }

  @Test
  void aModelThatDoesNotFitHoldsNothing() {
    ModelWeights weights = new ModelWeights(gpu, "large");
    when(gpu.tryReserve(any())).thenReturn(Optional.empty());
    assertThatExceptionOfType(GpuCapacityException.class)
        .isThrownBy(() -> weights.reserve(2000))
        .withMessageContaining("model=large")
        .withMessageContaining("virtualGpu=embed-1");
    assertThat(weights.leftForCalls()).isEqualTo(1000);
  }
}
