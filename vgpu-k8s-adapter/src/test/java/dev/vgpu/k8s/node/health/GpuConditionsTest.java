package dev.vgpu.k8s.node.health;

import static org.assertj.core.api.Assertions.assertThat;
import static org.mockito.Mockito.verify;

import dev.vgpu.k8s.node.health.Condition.Kind;
import dev.vgpu.request.GpuId;
import dev.vgpu.watch.GpuEvent;
import dev.vgpu.watch.GpuHealth;
import dev.vgpu.watch.GpuListener;
import java.time.Instant;
import java.util.Map;
import org.junit.jupiter.api.Test;
import org.mockito.ArgumentCaptor;

/** What counts of what the seat was told and of what is read. */
class GpuConditionsTest {
  private static final GpuId GPU = new GpuId("GPU-1");

  private final MockedGpus gpus = new MockedGpus("GPU-1", "MIG-2");
  private final GpuConditions conditions = new GpuConditions(gpus.pool);

  private Kind kind() {
    return conditions.now().getOrDefault(GPU, Condition.GOOD).kind();
  }

  @Test
  void theWorstCounts() {
    assertThat(kind()).isEqualTo(Kind.GOOD);
    gpus.is("GPU-1", GpuHealth.DEGRADED);
    assertThat(kind()).as("the seat tells at once").isEqualTo(Kind.DEGRADED);
    gpus.reads("GPU-1", Map.of("mig_mode", "on"));
    conditions.read();
    assertThat(kind()).isEqualTo(Kind.MIG);
    gpus.is("GPU-1", GpuHealth.LOST);
    assertThat(kind()).isEqualTo(Kind.LOST);
    gpus.is("GPU-1", GpuHealth.HEALTHY);
    gpus.reads("GPU-1", Map.of("mig_mode", "off"));
    conditions.read();
    assertThat(kind()).isEqualTo(Kind.GOOD);
  }

  /** It offers its parts: they are gone if the mode is switched off. */
  @Test
  void aGpuThatWasFoundInMigModeIsGoodWhileThatIsOn() {
    gpus.isDivided("GPU-1", MockedGpus.partsOfA100());
    conditions.read();
    assertThat(kind()).isEqualTo(Kind.GOOD);
    gpus.reads("GPU-1", Map.of("mig_mode", "off"));
    conditions.read();
    assertThat(kind()).isEqualTo(Kind.MIG);
    assertThat(conditions.now().get(GPU).reason()).contains("switched off");
  }

  /** An instance is usable, whatever its driver says of the mode of its GPU. */
  @Test
  void anInstanceIsNotCut() {
    gpus.reads("MIG-2", Map.of("mig_mode", "on", "parent", "GPU-3"));
    conditions.read();
    assertThat(conditions.now().get(new GpuId("MIG-2")).isGood()).isTrue();
  }

  /** Whoever looks often need not work the conditions out each time. */
  @Test
  void whatIsToldAndWhatIsReadIsAChange() {
    ArgumentCaptor<GpuListener> listener = ArgumentCaptor.forClass(GpuListener.class);
    verify(gpus.pool).listen(listener.capture());
    long before = conditions.changes();
    assertThat(kind()).isEqualTo(Kind.GOOD);
    long read = conditions.changes();
    assertThat(read).as("it was read for the first time").isGreaterThan(before);
    assertThat(kind()).isEqualTo(Kind.GOOD);
    assertThat(conditions.changes()).isEqualTo(read);
    listener
        .getValue()
        .onEvent(
            new GpuEvent.HealthChanged(
                Instant.EPOCH, "", GPU, GpuHealth.DEGRADED, "as a test wants it"));
    long told = conditions.changes();
    assertThat(told).isGreaterThan(read);
    conditions.read();
    assertThat(conditions.changes()).isGreaterThan(told);
  }

  @Test
  void whatALostGpuLastSaidIsKept() {
    gpus.reads("GPU-1", Map.of("numa_node", "1"));
    conditions.read();
    gpus.reads("GPU-1", GpuHealth.LOST, Map.of());
    conditions.read();
    assertThat(kind()).isEqualTo(Kind.LOST);
    assertThat(conditions.answer(GPU).orElseThrow().properties()).containsEntry("numa_node", "1");
  }
}
