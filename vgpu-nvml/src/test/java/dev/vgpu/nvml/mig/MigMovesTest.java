package dev.vgpu.nvml.mig;

import static org.assertj.core.api.Assertions.assertThat;
import static org.mockito.ArgumentMatchers.any;
import static org.mockito.ArgumentMatchers.contains;
import static org.mockito.Mockito.doAnswer;
import static org.mockito.Mockito.mock;
import static org.mockito.Mockito.spy;
import static org.mockito.Mockito.verify;

import dev.vgpu.GpuDriverException;
import dev.vgpu.VgpuException;
import dev.vgpu.nvml.EmulatedNvml;
import dev.vgpu.request.GpuId;
import dev.vgpu.request.MemorySize;
import dev.vgpu.request.VirtualGpuRequest;
import dev.vgpu.spi.EnforcedLease;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** Making room on a GPU of 2 GiB, where half a GPU fits only at slice 0 or 4. */
@Timeout(60)
class MigMovesTest extends OneMigGpu {
  private static final int ONE = 19;
  private static final int TWO = 14;

  private final EnforcedLease.Listener tells = mock();

  MigMovesTest() {
    super(1);
  }

  private EnforcedLease grant(MigEnforcement enforcement, String id, int mebibytes)
      throws IOException {
    return grant(enforcement, id, request(mebibytes), tells);
  }

  private static VirtualGpuRequest request(int mebibytes) {
    return VirtualGpuRequest.builder().name("x").memory(MemorySize.ofMebibytes(mebibytes)).build();
  }

  private List<Integer> starts() {
    return instances().stream().map(MigState.Instance::start).sorted().toList();
  }

  private Map<String, MigRecord> records() throws IOException {
    return MigRecord.all(MigEnforcement.directory(run));
  }

  /** Foreign instances at 4 and 6 block the upper half; ours, at 0 to 3, blocks the lower. */
  private EnforcedLease inTheWay(MigEnforcement enforcement) throws IOException {
    int left = theirs(TWO, 4, 2);
    theirs(ONE, 6, 1);
    EnforcedLease lease = grant(enforcement, "a", 200);
    assertThat(starts().get(0)).isLessThan(4);
    driver.destroyParts(gpu, left);
    driver.destroy(gpu, left);
    return lease;
  }

  @Test
  void anIdleInstanceIsMadeAnewWhereItIsInNobodysWay() throws IOException {
    try (MigEnforcement enforcement = open()) {
      EnforcedLease lease = inTheWay(enforcement);
      String before = lease.environment().get("CUDA_VISIBLE_DEVICES");
      assertThat(enforcement.lack(physical(), request(1_000))).isPresent();
      assertThat(enforcement.makeRoom(physical(), request(1_000), "a"::equals))
          .singleElement()
          .asString()
          .startsWith("a: its MIG instance moved from slice");
      assertThat(starts()).hasSize(2).allMatch(start -> start >= 4).contains(6);
      assertThat(lease.environment().get("CUDA_VISIBLE_DEVICES"))
          .isNotEqualTo(before)
          .isEqualTo(records().get("a").device().orElseThrow().value());
      verify(tells).disturbed(contains("need its variables anew"));
      assertThat(lease.impaired()).isEmpty();
      assertThat(enforcement.lack(physical(), request(1_000))).isEmpty();
      assertThat(enforcement.makeRoom(physical(), request(1_000), any -> true)).isEmpty();
      enforcement.look();
      EnforcedLease half = grant(enforcement, "b", 1_000);
      assertThat(starts()).hasSize(3).startsWith(0);
      lease.close();
      half.close();
      assertThat(starts()).containsExactly(6);
      assertThat(records()).isEmpty();
    }
  }

  @Test
  void withoutConsentAndOfOthersNothingIsMoved() throws IOException {
    try (MigEnforcement enforcement = open()) {
      EnforcedLease lease = inTheWay(enforcement);
      List<MigState.Instance> before = instances();
      assertThat(enforcement.makeRoom(physical(), request(1_000), any -> false)).isEmpty();
      assertThat(instances()).isEqualTo(before);
      lease.close();
      theirs(ONE, 1, 1);
      assertThat(enforcement.makeRoom(physical(), request(1_000), any -> true)).isEmpty();
      assertThat(starts()).containsExactly(1, 6);
    }
  }

  /** As if the driver refused to destroy it, because a program has just started in it. */
  @Test
  void whatCannotBeDestroyedStaysWhereItIs() throws IOException {
    try (MigEnforcement enforcement = open();
        EmulatedNvml nvml = new EmulatedNvml()) {
      EnforcedLease lease = inTheWay(enforcement);
      Map<String, String> variables = lease.environment();
      Map<String, MigRecord> written = records();
      nvml.set("unprivileged=nvmlComputeInstanceDestroy");
      assertThat(enforcement.makeRoom(physical(), request(1_000), any -> true)).isEmpty();
      nvml.set();
      assertThat(lease.environment()).isEqualTo(variables);
      assertThat(records()).isEqualTo(written);
    }
  }

  @Test
  void whatCannotBeMadeAnewIsToldAndNoRecordIsLeft() throws IOException {
    try (MigEnforcement enforcement = open();
        EmulatedNvml nvml = new EmulatedNvml()) {
      EnforcedLease lease = inTheWay(enforcement);
      nvml.set("unprivileged=nvmlDeviceCreateGpuInstanceWithPlacement");
      assertThat(enforcement.makeRoom(physical(), request(1_000), any -> true))
          .singleElement()
          .asString()
          .contains("could not be made anew", "Insufficient Permissions");
      nvml.set();
      assertThat(lease.impaired()).isPresent();
      lease.close();
      assertThat(starts()).containsExactly(6);
      assertThat(records()).isEmpty();
    }
  }

  /** As if the disk was full once one of two leases has left its instance. */
  @Test
  void aRecordThatCannotBeWrittenLeavesNoLeaseWithoutAnInstance() throws IOException {
    Path directory = MigEnforcement.directory(run);
    for (String blocked : List.of("a", "b")) {
      try (MigEnforcement enforcement = open()) {
        EnforcedLease one = inTheWay(enforcement);
        EnforcedLease other = grant(enforcement, "b", 200);
        Path inTheWay = Files.createDirectories(directory.resolve("." + blocked + ".new/x"));
        try {
          enforcement.makeRoom(physical(), request(1_000), any -> true);
        } catch (VgpuException e) { // it was the first
          assertThat(e).hasMessageContaining("cannot write the record");
        }
        enforcement.look();
        enforcement.look();
        enforcement.look();
        Files.delete(inTheWay);
        Files.delete(inTheWay.getParent());
        assertThat(records()).containsOnlyKeys("a", "b");
        for (EnforcedLease lease : List.of(one, other)) {
          assertThat(lease.impaired()).isEmpty();
          String device = lease.environment().get("CUDA_VISIBLE_DEVICES");
          assertThat(instances())
              .anySatisfy(instance -> assertThat(instance.has(new GpuId(device))).isTrue());
          lease.close();
        }
        assertThat(records()).isEmpty();
        for (MigState.Instance each : instances()) {
          driver.destroyParts(gpu, each.id());
          driver.destroy(gpu, each.id());
        }
      }
    }
  }

  /** As if the driver failed while one of two leases leaves its instance. */
  @ParameterizedTest
  @ValueSource(strings = {"a", "b"})
  void aDriverThatFailsLeavesNoLeaseWithoutAnInstance(String fails) throws IOException {
    Path leaving = MigEnforcement.directory(run).resolve(fails + MigMoves.LEFT);
    MigDriver seen = spy(MigDriver.of(provider));
    doAnswer(
            call -> {
              if (Files.exists(leaving)) {
                throw new GpuDriverException("the driver fails", 999);
              }
              return call.callRealMethod();
            })
        .when(seen)
        .gpu(any());
    try (MigEnforcement enforcement = new MigEnforcement(run, MigSeat.nothing(), () -> seen)) {
      EnforcedLease one = inTheWay(enforcement);
      EnforcedLease other = grant(enforcement, "b", 200);
      assertThat(enforcement.makeRoom(physical(), request(1_000), any -> true))
          .singleElement()
          .asString()
          .contains("moved from slice");
      assertThat(records()).containsOnlyKeys("a", "b");
      for (EnforcedLease lease : List.of(one, other)) {
        assertThat(lease.impaired()).isEmpty();
        String device = lease.environment().get("CUDA_VISIBLE_DEVICES");
        assertThat(instances())
            .anySatisfy(instance -> assertThat(instance.has(new GpuId(device))).isTrue());
        lease.close();
      }
      assertThat(records()).isEmpty();
      assertThat(starts()).containsExactly(6);
    }
  }

  /** Killed after the first record was written: both records name the old instance. */
  @Test
  void killedBeforeItLeftALeaseKeepsItsInstance() throws IOException {
    try (MigEnforcement dies = open()) {
      grant(dies, "a", 200);
    }
    MigRecord record = records().get("a");
    record.named("a" + MigMoves.LEFT).write(MigEnforcement.directory(run));
    try (MigEnforcement next = open()) {
      next.look();
      assertThat(records()).containsOnlyKeys("a");
      EnforcedLease lease = grant(next, "a", 200);
      assertThat(lease.environment())
          .containsEntry("CUDA_VISIBLE_DEVICES", record.device().orElseThrow().value());
      lease.close();
      assertThat(instances()).isEmpty();
    }
  }

  /** Killed before the old instance was destroyed, or before the new one was complete. */
  @Test
  void killedWhileItLeavesALeaseGetsANewInstanceAndNothingIsLeft() throws IOException {
    for (boolean isBegun : List.of(false, true)) {
      try (MigEnforcement dies = open()) {
        grant(dies, "a", 200);
      }
      MigRecord record = records().get("a");
      int start = record.start() == 0 ? 1 : 0;
      record.named("a" + MigMoves.LEFT).write(MigEnforcement.directory(run));
      MigRecord.intended("a", gpu, ONE, start, List.of(), record.terms())
          .write(MigEnforcement.directory(run));
      if (isBegun) {
        assertThat(driver.create(gpu, ONE, start, 1)).isNotNegative();
      }
      try (MigEnforcement next = open()) {
        EnforcedLease lease = grant(next, "a", 200);
        next.look();
        next.look();
        assertThat(instances()).hasSize(1);
        assertThat(records()).containsOnlyKeys("a");
        assertThat(lease.impaired()).isEmpty();
        lease.close();
        assertThat(instances()).isEmpty();
      }
    }
  }

  /** A shared instance is not moved. */
  @Test
  void anInstanceOfSeveralLeasesStays() throws IOException {
    try (MigEnforcement enforcement = open()) {
      EnforcedLease lease = inTheWay(enforcement);
      Files.createDirectories(run.resolve("leases/other"));
      records().get("a").named("other").write(MigEnforcement.directory(run));
      assertThat(enforcement.makeRoom(physical(), request(1_000), any -> true)).isEmpty();
      MigRecord.remove(MigEnforcement.directory(run), "other");
      lease.close();
    }
  }
}
