package dev.vgpu.micrometer;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.vgpu.GpuCapacityException;
import dev.vgpu.GpuPool;
import dev.vgpu.VirtualGpu;
import dev.vgpu.request.PreemptionClass;
import dev.vgpu.request.SharePolicy;
import io.micrometer.core.instrument.Meter;
import io.micrometer.core.instrument.MockClock;
import io.micrometer.core.instrument.Timer;
import io.micrometer.core.instrument.simple.SimpleConfig;
import io.micrometer.core.instrument.simple.SimpleMeterRegistry;
import java.time.Duration;
import java.util.List;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.locks.LockSupport;
import java.util.function.BooleanSupplier;
import java.util.function.DoubleSupplier;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;

class VgpuMetricsTest {
  private final MockClock clock = new MockClock();
  private final SimpleMeterRegistry registry = new SimpleMeterRegistry(SimpleConfig.DEFAULT, clock);
  private final TestGpu device = TestGpu.next();
  private final GpuPool pool = TestGpu.pool(device);
  private final VgpuMetrics metrics = new VgpuMetrics(pool);

  @AfterEach
  void close() {
    metrics.close();
    pool.close();
    registry.close();
  }

  /** Waits for the listener's thread; the test's timeout bounds the wait. */
  private static void await(BooleanSupplier condition) {
    while (!condition.getAsBoolean()) {
      assertThat(Thread.interrupted()).as("the test's time is over").isFalse();
      LockSupport.parkNanos(100_000);
    }
  }

  private double gauge(String name, String tenant) {
    return registry.get(name).tag("name", tenant).gauge().value();
  }

  private double count(String name, String tenant) {
    return registry.get(name).tag("name", tenant).functionCounter().count();
  }

  /** Of a tenant's meters, this one is the last to come and the last to go. */
  private boolean has(String tenant) {
    return registry.find("vgpu.leases").tag("name", tenant).meter() != null;
  }

  /** Makes earlier readings stale. */
  private void later() {
    clock.add(Duration.ofSeconds(1));
  }

  /** A read takes the values before while the listener's thread looks: reads until they are new. */
  private void awaitValue(DoubleSupplier value, double expected) {
    await(
        () -> {
          later();
          return value.getAsDouble() == expected;
        });
  }

  @Test
  void aVirtualGpuHasItsMetersWithAllTags() {
    metrics.bindTo(registry);
    try (VirtualGpu gpu =
        pool.acquire(
            TestGpu.request("embed")
                .computePercent(30)
                .policy(SharePolicy.FIXED_SHARE)
                .preemptionClass(PreemptionClass.ONLINE)
                .build())) {
      await(() -> has("embed"));

      Meter quota = registry.get("vgpu.memory.quota").tag("name", "embed").meter();
      assertThat(quota.getId().getTag("gpu")).isEqualTo(device.id().value());
      assertThat(quota.getId().getTag("class")).isEqualTo("online");
      assertThat(quota.getId().getTag("policy")).isEqualTo("fixed_share");
      assertThat(quota.getId().getBaseUnit()).isEqualTo("bytes");
      assertThat(gauge("vgpu.memory.quota", "embed")).isEqualTo(256.0 * 1024 * 1024);
      assertThat(gauge("vgpu.share.entitled", "embed")).isEqualTo(0.3);
      assertThat(gauge("vgpu.share.held", "embed")).isNaN();
      for (Meter meter : registry.getMeters()) {
        assertThat(meter.getId().getTags()).noneMatch(tag -> tag.getValue().equals(gpu.id()));
      }
    }
  }

  @Test
  void metersOfAClosedLeaseGoWithoutBeingRead() {
    metrics.bindTo(registry);
    VirtualGpu gpu = pool.acquire(TestGpu.request("short").build());
    await(() -> has("short"));

    gpu.close();

    await(() -> !has("short"));
    assertThat(registry.find("vgpu.gpu.time").tag("name", "short").meters()).isEmpty();
  }

  @Test
  void leasesThatWereThereBeforeAreFound() {
    try (VirtualGpu gpu = pool.acquire(TestGpu.request("early").build())) {
      metrics.bindTo(registry);

      assertThat(has("early")).isTrue();
      assertThat(gpu.isClosed()).isFalse();
    }
  }

  @Test
  void callsAreCountedAndTheirGpuTimeWithThem() throws Exception {
    metrics.bindTo(registry);
    try (VirtualGpu gpu = pool.acquire(TestGpu.request("busy").build())) {
      await(() -> has("busy"));
      for (int i = 0; i < 3; i++) {
        gpu.run(() -> {});
      }
      awaitValue(() -> count("vgpu.calls", "busy"), 3);

      assertThat(count("vgpu.gpu.time", "busy"))
          .isPositive()
          .isLessThanOrEqualTo(gpu.usage().gpuTime().toNanos() * 1e-9 + 1e-12);
    }
  }

  /** A sum that falls would look like a restart, and its whole value like new work. */
  @Test
  void aCountOfSeveralLeasesOfOneNameNeverFalls() throws Exception {
    metrics.bindTo(registry);
    VirtualGpu first = pool.acquire(TestGpu.request("twin").build());
    try (VirtualGpu second = pool.acquire(TestGpu.request("twin").build())) {
      await(() -> has("twin"));
      first.run(() -> {});
      first.run(() -> {});
      second.run(() -> {});
      awaitValue(() -> count("vgpu.calls", "twin"), 3);
      assertThat(gauge("vgpu.leases", "twin")).isEqualTo(2);

      first.close();
      awaitValue(
          () -> {
            assertThat(count("vgpu.calls", "twin")).isEqualTo(3);
            return gauge("vgpu.leases", "twin");
          },
          1);
      second.run(() -> {});
      awaitValue(
          () -> {
            assertThat(count("vgpu.calls", "twin")).isGreaterThanOrEqualTo(3);
            return count("vgpu.calls", "twin");
          },
          4);
      assertThat(gauge("vgpu.memory.quota", "twin")).isEqualTo(256.0 * 1024 * 1024);
    }
  }

  /** Between the last reading and the end of its lease, too. */
  @Test
  void whatALeaseUsesLastIsCountedForItsTenant() throws Exception {
    metrics.bindTo(registry);
    VirtualGpu first = pool.acquire(TestGpu.request("last").build());
    try (VirtualGpu second = pool.acquire(TestGpu.request("last").build())) {
      assertThat(second.isClosed()).isFalse();
      await(() -> has("last"));
      first.run(() -> {});
      awaitValue(() -> count("vgpu.calls", "last"), 1);
      first.run(() -> {});
      first.close();
      awaitValue(() -> count("vgpu.calls", "last"), 2);
      awaitValue(() -> gauge("vgpu.leases", "last"), 1);
      second.run(() -> {});
    }
    await(() -> !has("last"));
    try (VirtualGpu again = pool.acquire(TestGpu.request("last").build())) {
      await(() -> has("last"));
      again.run(() -> {});
      awaitValue(() -> count("vgpu.calls", "last"), 4);
    }
  }

  @Test
  void theHeldShareIsThatOfTheTimeThatPassed() throws Exception {
    metrics.bindTo(registry);
    try (VirtualGpu gpu = pool.acquire(TestGpu.request("half").build())) {
      await(() -> has("half"));
      gpu.run(() -> {});
      Duration used = gpu.usage().gpuTime();
      clock.add(Duration.ofSeconds(10));

      await(() -> !Double.isNaN(gauge("vgpu.share.held", "half")));
      assertThat(gauge("vgpu.share.held", "half")).isPositive().isLessThanOrEqualTo(1);
      assertThat(used).isPositive();
    }
  }

  @Test
  void aWaitingCallIsCounted() throws Exception {
    metrics.bindTo(registry);
    CountDownLatch inside = new CountDownLatch(1);
    CountDownLatch leave = new CountDownLatch(1);
    try (VirtualGpu gpu = pool.acquire(TestGpu.request("line").maxConcurrentCalls(1).build())) {
      await(() -> has("line"));
      var running =
          gpu.submit(
              () -> {
                inside.countDown();
                leave.await();
                return null;
              });
      inside.await();
      Thread waiting = new Thread(() -> runQuietly(gpu));
      waiting.start();
      awaitValue(() -> gauge("vgpu.calls.waiting", "line"), 1);

      assertThat(gauge("vgpu.calls.running", "line")).isEqualTo(1);
      leave.countDown();
      running.get();
      waiting.join();
    }
  }

  private static void runQuietly(VirtualGpu gpu) {
    try {
      gpu.run(() -> {});
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
    }
  }

  @Test
  void refusedRequestsAreCounted() {
    metrics.bindTo(registry);
    try (VirtualGpu all =
        pool.acquire(TestGpu.request("all").memory(device.usableMemory()).build())) {
      assertThat(all.isClosed()).isFalse();
      assertThatThrownBy(() -> pool.acquire(TestGpu.request("more").build()))
          .isInstanceOf(GpuCapacityException.class);

      await(() -> registry.get("vgpu.requests.refused").counter().count() == 1);
    }
  }

  @Test
  void aDeviceHasItsHealthAndFreeMemory() {
    metrics.bindTo(registry);

    assertThat(status("ok")).isEqualTo(1);
    assertThat(status("failed")).isZero();
    assertThat(
            registry.get("vgpu.pool.memory.free").tag("hw.id", device.id().value()).gauge().value())
        .isEqualTo((double) device.usableMemory().bytes());
    // No driver reports the temperature of a test's GPU: there is no meter with the value 0.
    assertThat(registry.find("hw.temperature").meter()).isNull();
  }

  @Test
  void whatADriverTellsIsMeasuredUnderTheNameOfTheConventions() {
    TestDriver.CELSIUS.put(device.id(), 61);
    metrics.bindTo(registry);

    assertThat(ofDevice("hw.temperature")).isEqualTo(61);
    assertThat(ofDevice("hw.gpu.utilization")).isEqualTo(0.4);

    TestDriver.CELSIUS.remove(device.id());
    later();
    assertThat(ofDevice("hw.temperature")).isNaN();
  }

  @Test
  void onlyAGpuWithTheHostsMemoryIsMeasuredAsSuch() {
    TestDriver.CELSIUS.put(device.id(), 61);
    metrics.bindTo(registry);
    assertThat(registry.find("vgpu.pool.memory.shared").meter()).isNull();

    TestDriver.SHARING.add(device.id());
    await(
        () -> {
          later();
          return ofDevice("hw.temperature") == 61
              && registry.find("vgpu.pool.memory.shared").gauge() != null;
        });
    assertThat(ofDevice("vgpu.pool.memory.shared")).isEqualTo(1);
    TestDriver.SHARING.remove(device.id());
    TestDriver.CELSIUS.remove(device.id());
  }

  private double ofDevice(String name) {
    return registry.get(name).tag("hw.id", device.id().value()).gauge().value();
  }

  private double status(String state) {
    return registry
        .get("hw.status")
        .tag("hw.id", device.id().value())
        .tag("hw.state", state)
        .gauge()
        .value();
  }

  @Test
  void closingRemovesEveryMeter() {
    metrics.bindTo(registry);
    try (VirtualGpu gpu = pool.acquire(TestGpu.request("gone").build())) {
      await(() -> has("gone"));
      metrics.close();

      assertThat(registry.getMeters()).isEmpty();
      assertThat(gpu.isClosed()).isFalse();
      assertThatThrownBy(() -> metrics.bindTo(registry)).isInstanceOf(IllegalStateException.class);
    }
  }

  @Test
  void aClosedPoolHasNoMetersOfLeasesLeft() {
    metrics.bindTo(registry);
    VirtualGpu orphan = pool.acquire(TestGpu.request("orphan").build());
    await(() -> has("orphan"));

    pool.close();

    await(
        () -> {
          later();
          registry.find("vgpu.memory.quota").gauges().forEach(gauge -> gauge.value());
          return !has("orphan");
        });
    assertThat(orphan.isClosed()).isTrue(); // with the pool; unreferenced, it would be before
  }

  @Test
  void twoRegistriesAreBoundEachOnItsOwn() {
    SimpleMeterRegistry other = new SimpleMeterRegistry(SimpleConfig.DEFAULT, clock);
    metrics.bindTo(registry);
    metrics.bindTo(other);

    assertThat(other.find("hw.status").meters()).hasSameSizeAs(registry.find("hw.status").meters());
    metrics.close();
    assertThat(other.getMeters()).isEmpty();
  }

  @Test
  void aTimedVirtualGpuRecordsEachWait() throws Exception {
    try (VirtualGpu gpu =
        VgpuMetrics.timed(pool.acquire(TestGpu.request("timed").build()), registry)) {
      List<String> order = List.of(gpu.call(() -> "a"), gpu.submit(() -> "b").get());
      gpu.run(() -> {});
      gpu.enter().close();

      Timer waits = registry.get("vgpu.wait").tag("name", "timed").timer();
      assertThat(order).containsExactly("a", "b");
      assertThat(waits.count()).isEqualTo(4);
    }
  }

  /** The clock moves only while the second call waits, so its wait is known exactly. */
  @Test
  void aWaitIsAsLongAsTheCallBeforeIt() throws Exception {
    try (VirtualGpu gpu =
        VgpuMetrics.timed(
            pool.acquire(TestGpu.request("exact").maxConcurrentCalls(1).build()), registry)) {
      CountDownLatch inside = new CountDownLatch(1);
      CountDownLatch leave = new CountDownLatch(1);
      var running =
          gpu.submit(
              () -> {
                inside.countDown();
                leave.await();
                return null;
              });
      inside.await();
      Thread waiting = new Thread(() -> runQuietly(gpu));
      waiting.start();
      await(() -> gpu.usage().waiting() == 1);
      clock.add(Duration.ofSeconds(7));
      leave.countDown();
      running.get();
      waiting.join();

      Timer waits = registry.get("vgpu.wait").tag("name", "exact").timer();
      assertThat(waits.totalTime(java.util.concurrent.TimeUnit.SECONDS)).isEqualTo(7.0);
      assertThat(waits.count()).isEqualTo(2);
    }
  }
}
