package dev.vgpu.spring;

import static org.assertj.core.api.Assertions.assertThat;

import dev.vgpu.testing.CallCost;
import org.junit.jupiter.api.Test;

/** A timed call of a model's bean. {@link StarterCost} also prints its time. */
class CallCostTest {
  @Test
  void aCallOfABeanAllocatesLittleMoreThanOneOfThePoolsVirtualGpu() throws Exception {
    CallCost[] costs = StarterCost.calls(20_000);

    assertThat(costs[1].above(costs[0]).bytes()).isLessThanOrEqualTo(100);
    assertThat(costs[1].bytes()).isLessThanOrEqualTo(100);
  }
}
