package dev.vgpu.nvml;

import static java.nio.charset.StandardCharsets.UTF_8;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.mockito.ArgumentMatchers.any;
import static org.mockito.ArgumentMatchers.anyLong;
import static org.mockito.Mockito.doAnswer;
import static org.mockito.Mockito.doReturn;
import static org.mockito.Mockito.mock;
import static org.mockito.Mockito.spy;

import dev.vgpu.GpuDriverException;
import dev.vgpu.nvml.binding.NvmlState;
import dev.vgpu.request.GpuId;
import dev.vgpu.request.MemorySize;
import dev.vgpu.watch.GpuHealth;
import dev.vgpu.watch.GpuReading;
import dev.vgpu.watch.PhysicalGpu;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.file.Path;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.OptionalInt;
import java.util.OptionalLong;
import java.util.stream.Collectors;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** Readings of GPUs, also of lost ones, and of drivers that report impossible values. */
@Timeout(60)
class NvmlReadingTest {
  private static final long GIB = 1L << 30;

  private EmulatedNvml nvml;
  private NvmlProvider provider;

  @BeforeEach
  void open() throws IOException {
    nvml = new EmulatedNvml();
    provider = nvml.provider();
  }

  @AfterEach
  void close() throws IOException {
    OpenNvml.endAll();
    nvml.close();
  }

  private List<GpuHealth> health() {
    return provider.readings().stream().map(GpuReading::health).toList();
  }

  @Test
  void aGpuTellsHowItIs() throws IOException {
    nvml.set(
        "temperature.1=71",
        "power.1=345600",
        "memory_reserved=1048576",
        "encoder.1=12",
        "ecc.1=1",
        "ecc_corrected.1=7",
        "nvlink_down.1=3",
        "numa.1=1",
        "clique.1=42",
        "compute_mode.1=3",
        "host_vgpu.1=1");
    List<GpuReading> readings = provider.readings();
    assertThat(readings).hasSize(3).allMatch(reading -> reading.health() == GpuHealth.HEALTHY);
    GpuReading first = readings.get(0);
    assertThat(first.memoryTotal()).contains(MemorySize.ofGibibytes(2));
    assertThat(first.memoryUsed()).contains(MemorySize.ZERO);
    assertThat(first.memoryReserved()).contains(MemorySize.ofMebibytes(1));
    assertThat(first.busyPercent()).hasValue(0);
    assertThat(first.clockMhz()).hasValue(1755);
    assertThat(first.eccCorrected()).isEqualTo(OptionalLong.empty());
    assertThat(first.properties())
        .containsEntry("driver_version", "580.00.00")
        .containsEntry("cuda_version", "13.0")
        .containsEntry("architecture", "Hopper")
        .containsEntry("compute_capability", "9.0")
        .containsEntry("pci", "00000000:01:00.0")
        .containsEntry("numa_node", "0")
        .containsEntry("compute_mode", "default")
        .doesNotContainKeys("sriov", "clique");
    GpuReading second = readings.get(1);
    assertThat(second.temperatureCelsius()).hasValue(71);
    assertThat(second.powerWatts()).hasValue(345.6);
    assertThat(second.powerLimitWatts()).hasValue(700);
    assertThat(second.encoderPercent()).hasValue(12);
    assertThat(second.eccCorrected()).hasValue(7);
    assertThat(second.properties())
        .containsEntry("numa_node", "1")
        .containsEntry("clique", "5e5e5e5e-5e5e-5e5e-5e5e-5e5e5e5e5e5e.42")
        .containsEntry("compute_mode", "exclusive process")
        .containsEntry("sriov", "yes");
    assertThat(second.nvLinks()).hasSize(12);
    assertThat(second.nvLinks().get(3).isActive()).isFalse();
    assertThat(second.nvLinks().get(0).peer()).contains(readings.get(2).gpu().value());
    assertThat(second.nvLinks().get(1).peer()).contains(first.gpu().value());
  }

  @Test
  void faultsOfTheMemoryAreTold() throws IOException {
    nvml.set("ecc=1", "ecc_uncorrected.0=2", "rows_pending.1=1", "rows_failed.2=1");
    assertThat(provider.readings())
        .allMatch(reading -> reading.health() == GpuHealth.DEGRADED)
        .extracting(GpuReading::healthReason)
        .containsExactly(
            "2 errors of the memory could not be corrected",
            "a row of the memory is retired at the next reset",
            "a row of the memory could not be retired");
  }

  /** NVML may write the numbers in any order. */
  @Test
  void rowsThatWereRemappedAreNoFault() {
    NvmlState state = mock(call -> call.getMethod().getReturnType() == int.class ? 3 : null);
    doAnswer(
            call -> {
              call.<ByteBuffer>getArgument(4).putInt(0, 0);
              call.<ByteBuffer>getArgument(1).putInt(0, 1);
              return 0;
            })
        .when(state)
        .nvmlDeviceGetRemappedRows(anyLong(), any(), any(), any(), any());
    NvmlSession session = spy(provider.session());
    doReturn(state).when(session).state();
    GpuId gpu = provider.gpus().get(0).id();
    assertThat(new NvmlReader(session).read(gpu).health()).isEqualTo(GpuHealth.HEALTHY);
    session.close();
  }

  @Test
  void aLostGpuIsToldAndComesBack() throws IOException {
    assertThat(health()).containsOnly(GpuHealth.HEALTHY);
    nvml.set("lost.1=1");
    GpuReading lost = provider.readings().get(1);
    assertThat(lost.health()).isEqualTo(GpuHealth.LOST);
    assertThat(lost.healthReason()).contains("GPU is lost", "15");
    assertThat(lost.memoryTotal()).isEmpty();
    assertThat(health()).containsExactly(GpuHealth.HEALTHY, GpuHealth.LOST, GpuHealth.HEALTHY);
    assertThat(provider.gpus()).hasSize(2);
    nvml.set();
    assertThat(health()).containsOnly(GpuHealth.HEALTHY);
    nvml.set("unplugged.2=1");
    assertThat(health()).containsExactly(GpuHealth.HEALTHY, GpuHealth.HEALTHY, GpuHealth.LOST);
    nvml.set();
    assertThat(health()).containsOnly(GpuHealth.HEALTHY);
  }

  @Test
  void aListingThatFailsIsTriedAgain() throws IOException {
    nvml.set("fail.nvmlDeviceGetCount_v2=999");
    assertThat(health()).isEmpty();
    nvml.set();
    assertThat(health()).hasSize(3);
  }

  /** NVML may find no GPU by its UUID while one has fallen off. */
  @Test
  void theOthersOfALostGpuAreReadAllTheSame() throws IOException {
    assertThat(provider.gpus()).hasSize(3);
    nvml.set("lost.1=1", "fail.nvmlDeviceGetHandleByUUID=15");
    assertThat(health()).containsExactly(GpuHealth.HEALTHY, GpuHealth.LOST, GpuHealth.HEALTHY);
  }

  @Test
  void aGpuThatCannotBeReadHidesNoOther() throws IOException {
    nvml.set("fail.nvmlDeviceGetName.0=2");
    assertThat(provider.gpus()).hasSize(2);
    assertThat(provider.status().notes())
        .singleElement()
        .asString()
        .contains("a GPU is left out: index=0", "nvmlDeviceGetName failed");
  }

  @Test
  void aDriverIsReloaded() throws IOException {
    assertThat(health()).containsOnly(GpuHealth.HEALTHY);
    nvml.set("driver=9");
    assertThat(health()).hasSize(3).containsOnly(GpuHealth.LOST);
    assertThat(provider.readings().get(0).healthReason()).contains("Driver Not Loaded");
    assertThat(provider.gpus()).isEmpty();
    nvml.set("generation=1"); // sessions from before get no answer
    assertThat(health()).containsOnly(GpuHealth.HEALTHY);
    nvml.set("generation=2");
    assertThat(health()).containsOnly(GpuHealth.LOST);
    assertThat(health()).containsOnly(GpuHealth.HEALTHY);
  }

  @Test
  void namesHoldWhenDevicesAreNumberedAnew() throws IOException {
    List<GpuId> before = provider.gpus().stream().map(PhysicalGpu::id).toList();
    nvml.set("memory_used.0=1048576");
    assertThat(used(before.get(0))).isEqualTo(1L << 20);
    nvml.set("memory_used.0=1048576", "order=2 0 1");
    List<GpuId> after = nvml.provider().gpus().stream().map(PhysicalGpu::id).toList();
    assertThat(after).containsExactly(before.get(2), before.get(0), before.get(1));
    assertThat(used(before.get(0))).isEqualTo(1L << 20);
    assertThat(used(before.get(2))).isZero();
    assertThat(provider.freeMemory(before.get(0)).orElseThrow().bytes())
        .isEqualTo(2 * GIB - (1L << 20));
  }

  private long used(GpuId gpu) {
    return provider.readings().stream()
        .filter(reading -> reading.gpu().equals(gpu))
        .findFirst()
        .flatMap(GpuReading::memoryUsed)
        .orElseThrow()
        .bytes();
  }

  @Test
  void threeHundredProcessesAreAllListed() throws IOException {
    nvml.set("processes.1=300", "process_memory=2097152");
    List<GpuReading.GpuProcess> processes = provider.readings().get(1).processes();
    assertThat(processes).hasSize(300);
    Map<Long, GpuReading.GpuProcess> byPid =
        processes.stream().collect(Collectors.toMap(GpuReading.GpuProcess::pid, each -> each));
    assertThat(byPid).hasSize(300);
    assertThat(processes)
        .allMatch(each -> each.memory().equals(Optional.of(MemorySize.ofMebibytes(2))));
    assertThat(provider.readings().get(0).processes()).isEmpty();
  }

  /** As GB10. */
  @Test
  void aGpuWithoutMemoryOfItsOwnHasTheHosts() throws IOException {
    nvml.set("fail.nvmlDeviceGetMemoryInfo.1=3", "fail.nvmlDeviceGetMemoryInfo_v2.1=3");
    HostMemory host = HostMemory.read().orElseThrow();

    PhysicalGpu gpu = provider.gpus().get(1);
    assertThat(provider.gpus()).hasSize(3);
    assertThat(gpu.memory()).isEqualTo(host.total());
    assertThat(gpu.usableMemory()).isLessThan(host.total()).isGreaterThan(MemorySize.ZERO);
    assertThat(provider.freeMemory(gpu.id()).orElseThrow())
        .isLessThan(host.total())
        .isGreaterThan(MemorySize.ZERO);
    assertThat(provider.status().unavailableBecause()).isEmpty();

    GpuReading reading = provider.readings().get(1);
    assertThat(reading.health()).isEqualTo(GpuHealth.HEALTHY);
    assertThat(reading.memoryTotal()).contains(host.total());
    assertThat(reading.memoryUsed().orElseThrow())
        .isLessThan(host.total())
        .isGreaterThan(MemorySize.ZERO);
    assertThat(reading.memoryReserved()).isEmpty();
    assertThat(reading.properties()).containsEntry("memory", "the host's");
    assertThat(provider.readings().get(0).properties()).doesNotContainKey("memory");
  }

  @Test
  void theHostsMemoryIsReadFromTheKernelsText() {
    List<String> text =
        List.of(
            "MemTotal:       127600748 kB",
            "MemFree:        100000000 kB",
            "MemAvailable:   118566368 kB",
            "HugePages_Total:       0");
    assertThat(HostMemory.parse(text))
        .contains(
            new HostMemory(
                MemorySize.ofBytes(127_600_748L << 10), MemorySize.ofBytes(118_566_368L << 10)));
    assertThat(HostMemory.parse(text).orElseThrow().used())
        .isEqualTo(MemorySize.ofBytes((127_600_748L - 118_566_368L) << 10));
    assertThat(HostMemory.parse(text.subList(0, 2))).isEmpty();
    assertThat(HostMemory.parse(List.of("MemTotal: 1 kB", "MemAvailable: 2 kB"))).isEmpty();
    assertThat(HostMemory.parse(List.of("MemTotal: -1 kB", "MemAvailable: 2 kB"))).isEmpty();
    assertThat(HostMemory.parse(List.of("MemTotal: 9999999999999999999 kB"))).isEmpty();
  }

  // ---- impossible values

  @Test
  void numbersThatCannotBeAreLeftOut() throws IOException {
    nvml.set(
        "memory_total=-1",
        "memory_used=-5",
        "memory_reserved=-7",
        "busy=4294967295",
        "memory_busy=101",
        "temperature=4294967295",
        "power=4294967295",
        "clock=4294967295",
        "encoder=300",
        "ecc=1",
        "ecc_uncorrected=-1",
        "numa=5000",
        "processes=3",
        "process_memory=-1");
    assertThat(provider.gpus()).allMatch(gpu -> gpu.usableMemory().equals(MemorySize.ZERO));
    GpuReading reading = provider.readings().get(0);
    assertThat(reading.health()).isEqualTo(GpuHealth.HEALTHY);
    assertThat(reading.memoryTotal()).isEmpty();
    assertThat(reading.memoryUsed()).isEmpty();
    assertThat(reading.memoryReserved()).isEmpty();
    assertThat(List.of(reading.busyPercent(), reading.memoryBusyPercent()))
        .containsOnly(OptionalInt.empty());
    assertThat(reading.temperatureCelsius()).isEmpty();
    assertThat(reading.powerWatts()).isEmpty();
    assertThat(reading.clockMhz()).isEmpty();
    assertThat(reading.encoderPercent()).isEmpty();
    assertThat(reading.eccUncorrected()).isEmpty();
    assertThat(reading.properties()).doesNotContainKey("numa_node");
    assertThat(reading.processes()).hasSize(3).allMatch(each -> each.memory().isEmpty());
    assertThat(provider.freeMemory(reading.gpu())).contains(MemorySize.ZERO);
  }

  @Test
  void lengthsThatCannotBeAreCut() throws IOException {
    GpuId gpu = provider.gpus().get(0).id();
    nvml.set("process_count=4000000000", "processes=2", "nvlinks=4000000000");
    assertThat(provider.readings()).hasSize(3);
    assertThat(provider.processes(gpu)).isEmpty();
    nvml.set("process_count=1000000", "processes=2");
    assertThat(provider.readings()).hasSize(3);
    nvml.set("count=4294967295");
    assertThat(provider.gpus()).hasSize(3);
    nvml.set("garbage=1"); // unterminated texts
    assertThatThrownBy(() -> provider.gpus())
        .isInstanceOf(GpuDriverException.class)
        .hasMessageContaining("none of the driver's GPUs can be used");
    assertThat(provider.status().unavailableBecause()).isPresent();
    // GPUs that are known by name are read all the same.
    assertThat(provider.readings()).hasSize(3);
    nvml.set("garbage=2"); // only in PCI bus ids
    provider = nvml.provider();
    assertThat(provider.gpus()).hasSize(3);
    assertThat(provider.readings()).hasSize(3);
    assertThat(provider.readings().get(0).properties())
        .containsKey("architecture")
        .doesNotContainKey("pci");
    assertThat(provider.readings().get(0).nvLinks())
        .hasSize(12)
        .allMatch(link -> link.peer().isEmpty());
  }

  @Test
  void noDevicesIsNoGpu() throws IOException {
    nvml.set("count=0");
    assertThat(provider.gpus()).isEmpty();
    assertThat(provider.readings()).isEmpty();
    assertThat(provider.status().unavailableBecause())
        .hasValueSatisfying(why -> assertThat(why).contains("the driver has no GPU"));
  }

  @ParameterizedTest
  @ValueSource(
      strings = {
        "nvmlSystemGetDriverVersion",
        "nvmlDeviceGetName",
        "nvmlDeviceGetPciInfo_v3",
        "nvmlDeviceGetMemoryInfo",
        "nvmlDeviceGetMemoryInfo_v2",
        "nvmlDeviceGetArchitecture",
        "nvmlDeviceGetCudaComputeCapability",
        "nvmlDeviceGetUtilizationRates",
        "nvmlDeviceGetEncoderUtilization",
        "nvmlDeviceGetDecoderUtilization",
        "nvmlDeviceGetComputeRunningProcesses_v3",
        "nvmlDeviceGetProcessUtilization",
        "nvmlDeviceGetTemperature",
        "nvmlDeviceGetPowerUsage",
        "nvmlDeviceGetEnforcedPowerLimit",
        "nvmlDeviceGetClockInfo",
        "nvmlDeviceGetEccMode",
        "nvmlDeviceGetTotalEccErrors",
        "nvmlDeviceGetRemappedRows",
        "nvmlDeviceGetPersistenceMode",
        "nvmlDeviceGetComputeMode",
        "nvmlDeviceGetMigMode",
        "nvmlDeviceGetMemoryAffinity",
        "nvmlDeviceGetNvLinkState",
        "nvmlDeviceGetNvLinkRemoteDeviceType",
        "nvmlDeviceGetNvLinkRemotePciInfo_v2",
        "nvmlDeviceGetVirtualizationMode",
        "nvmlDeviceGetHostVgpuMode"
      })
  void whatIsForbiddenIsLeftOut(String function) throws IOException {
    List<PhysicalGpu> before = provider.gpus();
    for (int code : List.of(4, 3, 13, 4711)) {
      nvml.set("processes=2", "fail." + function + "=" + code);
      assertThat(provider.readings())
          .hasSize(before.size())
          .allMatch(reading -> reading.health() == GpuHealth.HEALTHY);
    }
  }

  @Test
  void codesThatNobodyKnowsAreKept() throws IOException {
    nvml.set("fail.nvmlInit_v2=4711");
    assertThatThrownBy(() -> provider.gpus())
        .isInstanceOfSatisfying(GpuDriverException.class, e -> assertThat(e.code()).hasValue(4711))
        .hasMessageContaining("nvmlInit_v2 failed")
        .hasMessageContaining("4711");
    assertThat(provider.status().unavailableBecause())
        .hasValueSatisfying(why -> assertThat(why).contains("4711"));
    assertThat(NvmlNames.xid(4711)).isEqualTo("critical error (XID 4711)");
    assertThat(NvmlNames.architecture(77)).isEqualTo("77");
  }

  /** An NVML of that age lacks a third of the functions. */
  @Test
  void anOldNvmlIsReadAsFarAsItGoes(@TempDir Path directory) throws Exception {
    Path old = directory.resolve("libnvidia-ml.so.1");
    String real = EmulatedNvml.driver().nvmlLibrary().toString();
    Process compiler =
        new ProcessBuilder(
                List.of(
                    "cc",
                    "-std=c11",
                    "-DREAL=\"" + real + "\"",
                    "-fPIC",
                    "-shared",
                    "src/test/c/old_nvml.c",
                    "-o",
                    old.toString(),
                    "-ldl"))
            .redirectErrorStream(true)
            .start();
    String said = new String(compiler.getInputStream().readAllBytes(), UTF_8);
    assertThat(compiler.waitFor()).as(said).isZero();
    nvml.set("processes=5", "driver_version=450.80.02", "memory_reserved=1048576");
    provider = new NvmlProvider(Map.of("VGPU_NVML", old.toString()), List.of(), List.of());
    assertThat(provider.status()).hasToString("nvml: available");
    assertThat(provider.gpus()).hasSize(3);
    GpuReading reading = provider.readings().get(0);
    assertThat(reading.health()).isEqualTo(GpuHealth.HEALTHY);
    assertThat(reading.properties())
        .containsEntry("driver_version", "450.80.02")
        .doesNotContainKeys("architecture", "mig_mode");
    assertThat(reading.memoryUsed()).contains(MemorySize.ofMebibytes(1)); // reserved included
    assertThat(reading.memoryReserved()).isEmpty();
    assertThat(reading.processes()).hasSize(5).allMatch(each -> each.memory().isPresent());
    assertThat(reading.nvLinks()).isEmpty();
    assertThat(reading.temperatureCelsius()).isPresent();
  }
}
