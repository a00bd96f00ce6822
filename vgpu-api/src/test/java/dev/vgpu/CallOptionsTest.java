package dev.vgpu;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatIllegalArgumentException;
import static org.assertj.core.api.Assertions.assertThatNullPointerException;

import dev.vgpu.request.MemorySize;
import dev.vgpu.request.PreemptionClass;
import java.time.Duration;
import org.junit.jupiter.api.Test;

class CallOptionsTest {
  private final CallOptions.Builder builder = CallOptions.builder();

  @Test
  void defaultsAskForNothing() {
    CallOptions options = CallOptions.defaults();
    assertThat(options.timeout()).isEmpty();
    assertThat(options.memory()).isEqualTo(MemorySize.ZERO);
    assertThat(options.preemptionClass()).isEmpty();
    assertThat(options.maxPreemptions()).isEqualTo(CallOptions.DEFAULT_MAX_PREEMPTIONS);
    assertThat(builder.build()).usingRecursiveComparison().isEqualTo(options);
  }

  @Test
  void allThatIsSetIsHeld() {
    CallOptions options =
        builder
            .timeout(Duration.ofSeconds(2))
            .memory(MemorySize.ofMebibytes(3))
            .preemptionClass(PreemptionClass.OFFLINE)
            .maxPreemptions(0)
            .build();
    assertThat(options.timeout()).hasValue(Duration.ofSeconds(2));
    assertThat(options.memory()).isEqualTo(MemorySize.ofMebibytes(3));
    assertThat(options.preemptionClass()).hasValue(PreemptionClass.OFFLINE);
    assertThat(options.maxPreemptions()).isZero();
    assertThat(options.toBuilder().build()).usingRecursiveComparison().isEqualTo(options);
  }

  @Test
  void shortFormsSetOneThing() {
    MemorySize peak = MemorySize.ofMebibytes(3);
    assertThat(CallOptions.ofMemory(peak))
        .usingRecursiveComparison()
        .isEqualTo(builder.memory(peak).build());
    assertThat(CallOptions.ofTimeout(Duration.ZERO))
        .usingRecursiveComparison()
        .isEqualTo(CallOptions.builder().timeout(Duration.ZERO).build());
  }

  @Test
  void timeoutBelowZeroIsRefused() {
    assertThatIllegalArgumentException()
        .isThrownBy(() -> CallOptions.ofTimeout(Duration.ofNanos(-1)))
        .withMessageContaining("timeout=PT-0.000000001S");
  }

  @Test
  void budgetOfZeroIsRefused() {
    assertThatIllegalArgumentException()
        .isThrownBy(() -> CallOptions.ofMemory(MemorySize.ZERO))
        .withMessageContaining("leave it out");
  }

  @Test
  void numberOfPreemptionsBelowZeroIsRefused() {
    assertThatIllegalArgumentException()
        .isThrownBy(() -> builder.maxPreemptions(-1))
        .withMessageContaining("maxPreemptions=-1");
  }

  @Test
  void absentValuesAreRefused() {
    assertThatNullPointerException().isThrownBy(() -> builder.timeout(null)).withMessage("timeout");
    assertThatNullPointerException().isThrownBy(() -> builder.memory(null)).withMessage("peak");
    assertThatNullPointerException()
        .isThrownBy(() -> builder.preemptionClass(null))
        .withMessage("preemptionClass");
  }
}
