package dev.vgpu.backend;

import static org.assertj.core.api.Assertions.assertThat;

import dev.vgpu.request.Capabilities;
import java.util.List;
import org.junit.jupiter.api.Test;

class BackendStatusTest {
  private static final Capabilities EXACT =
      Capabilities.builder().memory(Capabilities.Memory.EXACT).build();

  @Test
  void anAvailableBackendSaysWhatItCanDo() {
    BackendStatus status = BackendStatus.ofAvailable("hook", EXACT);
    assertThat(status.name()).isEqualTo("hook");
    assertThat(status.isAvailable()).isTrue();
    assertThat(status.unavailableBecause()).isEmpty();
    assertThat(status.capabilities()).contains(EXACT);
    assertThat(status.notes()).isEmpty();
    assertThat(status).hasToString("hook: available");
  }

  @Test
  void aProviderEnforcesNothing() {
    assertThat(BackendStatus.ofAvailable("nvml").isAvailable()).isTrue();
    assertThat(BackendStatus.ofAvailable("nvml").capabilities()).isEmpty();
  }

  @Test
  void anUnavailableOneSaysWhy() {
    BackendStatus status = BackendStatus.ofUnavailable("kmod", "not loaded: modprobe vgpu_kmod");
    assertThat(status.isAvailable()).isFalse();
    assertThat(status.unavailableBecause()).contains("not loaded: modprobe vgpu_kmod");
    assertThat(status.capabilities()).isEmpty();
    assertThat(status).hasToString("kmod: not loaded: modprobe vgpu_kmod");
  }

  @Test
  void notesChangeNothingElse() {
    BackendStatus status = BackendStatus.ofAvailable("hook", EXACT).withNotes(List.of("a note"));
    assertThat(status.notes()).containsExactly("a note");
    assertThat(status.capabilities()).contains(EXACT);
    assertThat(status).hasToString("hook: available");
  }
}
