package dev.vgpu.nvml.mig;

import static org.assertj.core.api.Assertions.assertThat;
import static org.mockito.ArgumentMatchers.any;
import static org.mockito.ArgumentMatchers.anyInt;
import static org.mockito.Mockito.doAnswer;
import static org.mockito.Mockito.doReturn;
import static org.mockito.Mockito.mock;
import static org.mockito.Mockito.never;
import static org.mockito.Mockito.spy;
import static org.mockito.Mockito.verify;

import dev.vgpu.VgpuException;
import dev.vgpu.nvml.EmulatedNvml;
import dev.vgpu.nvml.mig.plan.MigGeometry;
import dev.vgpu.spi.EnforcedLease;
import java.io.IOException;
import java.nio.file.Files;
import java.util.List;
import java.util.Optional;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.function.Supplier;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;
import org.mockito.stubbing.Answer;

/** What the enforcement concludes from a look that says too little. */
@Timeout(60)
class MigLooksTest extends OneMigGpu {
  private final EnforcedLease.Listener tells = mock();

  MigLooksTest() {
    super(1);
  }

  private EnforcedLease grant(MigEnforcement enforcement) throws IOException {
    return grant(enforcement, "a", MigSeat.request(200), tells);
  }

  @ParameterizedTest
  @ValueSource(
      strings = {
        "profile_of", // the emulator's nvmlDeviceGetGpuInstanceProfileInfo
        "nvmlDeviceGetGpuInstancePossiblePlacements_v2"
      })
  void anErrorDoesNotMeanThatAProfileIsAbsent(String call) throws IOException {
    try (MigEnforcement enforcement = open();
        EmulatedNvml nvml = new EmulatedNvml()) {
      EnforcedLease lease = grant(enforcement);
      nvml.set("fail.nvmlDeviceGetCount_v2=999"); // the next look opens the driver anew
      enforcement.look();
      nvml.set("fail." + call + ".1=999");
      enforcement.look();
      enforcement.look();
      enforcement.look();
      nvml.set();
      enforcement.look();
      verify(tells, never()).disturbed(any());
      assertThat(lease.impaired()).isEmpty();
      lease.close();
      assertThat(driver.gpu(gpu).instances()).isEmpty();
    }
  }

  @Test
  void anInstanceWhoseProfileIsNotToldIsNotLost() throws IOException {
    MigDriver seen = spy(MigDriver.of(provider));
    try (MigEnforcement enforcement = new MigEnforcement(run, MigSeat.nothing(), () -> seen)) {
      EnforcedLease lease = grant(enforcement);
      MigState now = driver.gpu(gpu);
      MigGeometry all = now.geometry().orElseThrow();
      int has = now.instances().get(0).profileId();
      MigGeometry others =
          new MigGeometry(
              all.computeSlices(),
              all.memorySlices(),
              all.profiles().stream().filter(profile -> profile.id() != has).toList());
      MigState partial = new MigState(gpu, now.model(), true, true, Optional.of(others), List.of());
      doReturn(List.of(partial)).when(seen).gpus();
      enforcement.look();
      enforcement.look();
      enforcement.look();
      verify(tells, never()).disturbed(any());
      lease.close();
    }
  }

  @Test
  @SuppressWarnings("try") // it only has to be open
  void theLooksGoOnAfterALackOfMemory() throws InterruptedException {
    CountDownLatch third = new CountDownLatch(3);
    Supplier<MigDriver> open =
        () -> {
          third.countDown();
          if (third.getCount() == 1) {
            throw new OutOfMemoryError("thread");
          }
          throw new VgpuException("no driver");
        };
    try (MigEnforcement ignored = new MigEnforcement(run, MigSeat.nothing(), open)) {
      assertThat(third.await(30, TimeUnit.SECONDS)).isTrue();
    }
  }

  /** As if NVML listed no compute instances, or failed while it listed them. */
  @ParameterizedTest
  @ValueSource(booleans = {false, true})
  void computeInstancesThatAreNotListedOnceAreDestroyedLater(boolean fails) throws IOException {
    MigDriver seen = spy(MigDriver.of(provider));
    try (MigEnforcement enforcement = new MigEnforcement(run, MigSeat.nothing(), () -> seen);
        EmulatedNvml nvml = new EmulatedNvml()) {
      EnforcedLease lease = grant(enforcement);
      Answer<Object> once =
          call -> {
            if (fails) {
              nvml.set("fail.nvmlDeviceGetMaxMigDeviceCount=999");
              try {
                return call.callRealMethod();
              } finally {
                nvml.set();
              }
            }
            return null;
          };
      doAnswer(once).doCallRealMethod().when(seen).destroyParts(any(), anyInt(), any());
      lease.close();
      assertThat(driver.gpu(gpu).instances()).hasSize(1);
      Files.delete(run.resolve("leases/a"));
      enforcement.look();
      assertThat(driver.gpu(gpu).instances()).isEmpty();
      assertThat(MigRecord.all(MigEnforcement.directory(run))).isEmpty();
    }
  }

  /** As if NVML listed too little once, or could not say. */
  @Test
  void anInstanceThatOneLookDoesNotFindIsNotLost() throws IOException {
    MigDriver seen = spy(MigDriver.of(provider));
    try (MigEnforcement enforcement = new MigEnforcement(run, MigSeat.nothing(), () -> seen);
        EmulatedNvml nvml = new EmulatedNvml()) {
      EnforcedLease lease = grant(enforcement);
      MigState now = driver.gpu(gpu);
      MigState blank = new MigState(gpu, now.model(), true, true, now.geometry(), List.of());
      doReturn(List.of(blank)).doCallRealMethod().when(seen).gpus();
      enforcement.look();
      enforcement.look();
      for (String call :
          List.of(
              "nvmlDeviceGetMaxMigDeviceCount",
              "nvmlDeviceGetMigDeviceHandleByIndex",
              "nvmlDeviceGetGpuInstanceId")) {
        nvml.set("fail." + call + "=999");
        enforcement.look();
        enforcement.look();
        enforcement.look();
      }
      nvml.set();
      verify(tells, never()).disturbed(any());
      assertThat(lease.impaired()).isEmpty();
      try (MigEnforcement next = new MigEnforcement(run, MigSeat.nothing(), () -> seen)) {
        doReturn(blank).doCallRealMethod().when(seen).gpu(gpu);
        String device = lease.environment().get("CUDA_VISIBLE_DEVICES");
        assertThat(grant(next).environment()).containsEntry("CUDA_VISIBLE_DEVICES", device);
      }
    }
  }
}
