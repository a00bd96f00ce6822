package dev.vgpu.core.metering;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.within;

import dev.vgpu.core.metering.MeteredNode.Tenant;
import java.io.IOException;
import java.util.OptionalDouble;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;

class SlowdownTest {
  private MeteredNode node;
  private Tenant one;
  private Tenant other;

  @BeforeEach
  void begin() throws IOException {
    node = new MeteredNode();
    one = node.acquire("one-1", "GPU-1");
    other = node.acquire("other-2", "GPU-1");
  }

  @AfterEach
  void end() throws IOException {
    node.close();
  }

  private OptionalDouble slowdown(Tenant tenant) {
    return node.tenants.get(tenant).slowdown();
  }

  private static void work(Tenant tenant, int launches, int usEach) {
    tenant.launches += launches;
    tenant.gpuNs += 1_000L * launches * usEach;
  }

  private void seconds(int count, int oneUs, int otherUs) {
    for (int i = 0; i < count; i++) {
      work(one, 100, oneUs);
      if (otherUs > 0) {
        work(other, 50, otherUs);
      }
      node.second();
    }
  }

  @Test
  void workThatTakesATenthLongerBesideOthersIsSeen() {
    seconds(10, 500, 0);
    assertThat(slowdown(one).orElseThrow()).isCloseTo(1.0, within(1e-9));
    seconds(30, 550, 400);
    assertThat(slowdown(one).orElseThrow()).isCloseTo(1.1, within(0.001));
    assertThat(slowdown(other)).isEmpty(); // never alone: nothing to compare with
    seconds(30, 500, 0);
    assertThat(slowdown(one).orElseThrow()).isCloseTo(1.0, within(0.001));
  }

  @Test
  void withoutEnoughOfBothNothingIsSaid() {
    seconds(20, 550, 400);
    assertThat(slowdown(one)).isEmpty();
    seconds(2, 500, 0);
    assertThat(slowdown(one)).isEmpty();
    seconds(1, 500, 0);
    assertThat(slowdown(one)).isPresent();
  }

  @Test
  void otherGpusAreNotBeside() {
    Tenant elsewhere = node.acquire("elsewhere-3", "GPU-2");
    for (int i = 0; i < 10; i++) {
      work(one, 100, 500);
      work(elsewhere, 100, 700);
      node.second();
    }
    assertThat(slowdown(one).orElseThrow()).isCloseTo(1.0, within(1e-9));
    assertThat(slowdown(elsewhere).orElseThrow()).isCloseTo(1.0, within(1e-9));
  }

  @Test
  void idleSecondsChangeNothing() {
    seconds(10, 500, 0);
    seconds(10, 600, 100);
    OptionalDouble before = slowdown(one);
    for (int i = 0; i < 100; i++) {
      node.second();
    }
    assertThat(slowdown(one)).isEqualTo(before);
  }
}
