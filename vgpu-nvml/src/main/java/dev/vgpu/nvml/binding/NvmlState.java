package dev.vgpu.nvml.binding;

import java.nio.ByteBuffer;

/**
 * More functions of an NVML library, under their C names: the state of devices, and events. Like
 * {@link Nvml}; safe for use by several threads.
 */
public final class NvmlState {
  private final Nvml nvml;

  /**
   * Binds the same library.
   *
   * @param nvml the bound library
   */
  public NvmlState(Nvml nvml) {
    this.nvml = nvml;
  }

  /**
   * {@return the code of {@code nvmlSystemGetCudaDriverVersion}}
   *
   * @param cudaDriverVersion int, out: 1000 times the major version, and 10 times the minor one
   */
  public int nvmlSystemGetCudaDriverVersion(ByteBuffer cudaDriverVersion) {
    return nvml.call("nvmlSystemGetCudaDriverVersion", cudaDriverVersion);
  }

  /**
   * {@return the code of {@code nvmlDeviceGetHandleByPciBusId_v2}}
   *
   * @param pciBusId zero-terminated
   * @param device nvmlDevice_t, out
   */
  public int nvmlDeviceGetHandleByPciBusId_v2(ByteBuffer pciBusId, ByteBuffer device) {
    return nvml.call("nvmlDeviceGetHandleByPciBusId_v2", pciBusId, device);
  }

  /**
   * {@return the code of {@code nvmlDeviceIsMigDeviceHandle}}
   *
   * @param device the device
   * @param isMigDevice unsigned int, out
   */
  public int nvmlDeviceIsMigDeviceHandle(long device, ByteBuffer isMigDevice) {
    return nvml.call("nvmlDeviceIsMigDeviceHandle", device, isMigDevice);
  }

  /**
   * {@return the code of {@code nvmlDeviceGetDeviceHandleFromMigDeviceHandle}}
   *
   * @param migDevice the instance
   * @param device nvmlDevice_t, out
   */
  public int nvmlDeviceGetDeviceHandleFromMigDeviceHandle(long migDevice, ByteBuffer device) {
    return nvml.call("nvmlDeviceGetDeviceHandleFromMigDeviceHandle", migDevice, device);
  }

  /**
   * {@return the code of {@code nvmlDeviceGetIndex}}
   *
   * @param device the device
   * @param index unsigned int, out
   */
  public int nvmlDeviceGetIndex(long device, ByteBuffer index) {
    return nvml.call("nvmlDeviceGetIndex", device, index);
  }

  /**
   * {@return the code of {@code nvmlDeviceGetArchitecture}}
   *
   * @param device the device
   * @param arch unsigned int, out
   */
  public int nvmlDeviceGetArchitecture(long device, ByteBuffer arch) {
    return nvml.call("nvmlDeviceGetArchitecture", device, arch);
  }

  /**
   * {@return the code of {@code nvmlDeviceGetCudaComputeCapability}}
   *
   * @param device the device
   * @param major int, out
   * @param minor int, out
   */
  public int nvmlDeviceGetCudaComputeCapability(long device, ByteBuffer major, ByteBuffer minor) {
    return nvml.call("nvmlDeviceGetCudaComputeCapability", device, major, minor);
  }

  /**
   * {@return the code of {@code nvmlDeviceGetPciInfo_v3}}
   *
   * @param device the device
   * @param pci nvmlPciInfo_t, out
   */
  public int nvmlDeviceGetPciInfo_v3(long device, ByteBuffer pci) {
    return nvml.call("nvmlDeviceGetPciInfo_v3", device, pci);
  }

  /**
   * {@return the code of {@code nvmlDeviceGetUtilizationRates}}
   *
   * @param device the device
   * @param utilization nvmlUtilization_t, out
   */
  public int nvmlDeviceGetUtilizationRates(long device, ByteBuffer utilization) {
    return nvml.call("nvmlDeviceGetUtilizationRates", device, utilization);
  }

  /**
   * {@return the code of {@code nvmlDeviceGetEncoderUtilization}}
   *
   * @param device the device
   * @param utilization unsigned int, out, percent
   * @param samplingPeriodUs unsigned int, out
   */
  public int nvmlDeviceGetEncoderUtilization(
      long device, ByteBuffer utilization, ByteBuffer samplingPeriodUs) {
    return nvml.call("nvmlDeviceGetEncoderUtilization", device, utilization, samplingPeriodUs);
  }

  /**
   * {@return the code of {@code nvmlDeviceGetDecoderUtilization}}
   *
   * @param device the device
   * @param utilization unsigned int, out, percent
   * @param samplingPeriodUs unsigned int, out
   */
  public int nvmlDeviceGetDecoderUtilization(
      long device, ByteBuffer utilization, ByteBuffer samplingPeriodUs) {
    return nvml.call("nvmlDeviceGetDecoderUtilization", device, utilization, samplingPeriodUs);
  }

  /**
   * {@return the code of {@code nvmlDeviceGetProcessUtilization}}
   *
   * @param device the device
   * @param utilization array of nvmlProcessUtilizationSample_t, out
   * @param processSamplesCount unsigned int; in: room; out: how many there are
   * @param lastSeenTimeStamp microseconds; samples after it
   */
  public int nvmlDeviceGetProcessUtilization(
      long device, ByteBuffer utilization, ByteBuffer processSamplesCount, long lastSeenTimeStamp) {
    return nvml.call(
        "nvmlDeviceGetProcessUtilization",
        device,
        utilization,
        processSamplesCount,
        lastSeenTimeStamp);
  }

  /**
   * {@return the code of {@code nvmlDeviceGetTemperature}}
   *
   * @param device the device
   * @param sensorType the sensor
   * @param temp unsigned int, out, degrees Celsius
   */
  public int nvmlDeviceGetTemperature(long device, int sensorType, ByteBuffer temp) {
    return nvml.call("nvmlDeviceGetTemperature", device, sensorType, temp);
  }

  /**
   * {@return the code of {@code nvmlDeviceGetPowerUsage}}
   *
   * @param device the device
   * @param power unsigned int, out, milliwatts
   */
  public int nvmlDeviceGetPowerUsage(long device, ByteBuffer power) {
    return nvml.call("nvmlDeviceGetPowerUsage", device, power);
  }

  /**
   * {@return the code of {@code nvmlDeviceGetEnforcedPowerLimit}}
   *
   * @param device the device
   * @param limit unsigned int, out, milliwatts
   */
  public int nvmlDeviceGetEnforcedPowerLimit(long device, ByteBuffer limit) {
    return nvml.call("nvmlDeviceGetEnforcedPowerLimit", device, limit);
  }

  /**
   * {@return the code of {@code nvmlDeviceGetClockInfo}}
   *
   * @param device the device
   * @param type which clock
   * @param clock unsigned int, out, MHz
   */
  public int nvmlDeviceGetClockInfo(long device, int type, ByteBuffer clock) {
    return nvml.call("nvmlDeviceGetClockInfo", device, type, clock);
  }

  /**
   * {@return the code of {@code nvmlDeviceGetMaxClockInfo}}
   *
   * @param device the device
   * @param type which clock
   * @param clock unsigned int, out, MHz
   */
  public int nvmlDeviceGetMaxClockInfo(long device, int type, ByteBuffer clock) {
    return nvml.call("nvmlDeviceGetMaxClockInfo", device, type, clock);
  }

  /**
   * {@return the code of {@code nvmlDeviceGetEccMode}}
   *
   * @param device the device
   * @param current unsigned int, out
   * @param pending unsigned int, out
   */
  public int nvmlDeviceGetEccMode(long device, ByteBuffer current, ByteBuffer pending) {
    return nvml.call("nvmlDeviceGetEccMode", device, current, pending);
  }

  /**
   * {@return the code of {@code nvmlDeviceGetTotalEccErrors}}
   *
   * @param device the device
   * @param errorType corrected or not
   * @param counterType since the driver was loaded, or in all
   * @param eccCounts unsigned long long, out
   */
  public int nvmlDeviceGetTotalEccErrors(
      long device, int errorType, int counterType, ByteBuffer eccCounts) {
    return nvml.call("nvmlDeviceGetTotalEccErrors", device, errorType, counterType, eccCounts);
  }

  /**
   * {@return the code of {@code nvmlDeviceGetRemappedRows}}
   *
   * @param device the device
   * @param corrRows unsigned int, out
   * @param uncRows unsigned int, out
   * @param isPending unsigned int, out
   * @param failureOccurred unsigned int, out
   */
  public int nvmlDeviceGetRemappedRows(
      long device,
      ByteBuffer corrRows,
      ByteBuffer uncRows,
      ByteBuffer isPending,
      ByteBuffer failureOccurred) {
    return nvml.call(
        "nvmlDeviceGetRemappedRows", device, corrRows, uncRows, isPending, failureOccurred);
  }

  /**
   * {@return the code of {@code nvmlDeviceGetPersistenceMode}}
   *
   * @param device the device
   * @param mode unsigned int, out
   */
  public int nvmlDeviceGetPersistenceMode(long device, ByteBuffer mode) {
    return nvml.call("nvmlDeviceGetPersistenceMode", device, mode);
  }

  /**
   * {@return the code of {@code nvmlDeviceGetComputeMode}}
   *
   * @param device the device
   * @param mode unsigned int, out
   */
  public int nvmlDeviceGetComputeMode(long device, ByteBuffer mode) {
    return nvml.call("nvmlDeviceGetComputeMode", device, mode);
  }

  /**
   * {@return the code of {@code nvmlDeviceGetMemoryAffinity}}
   *
   * @param device the device
   * @param nodeSetSize words of nodeSet
   * @param nodeSet array of unsigned long, out
   * @param scope node or socket
   */
  public int nvmlDeviceGetMemoryAffinity(
      long device, int nodeSetSize, ByteBuffer nodeSet, int scope) {
    return nvml.call("nvmlDeviceGetMemoryAffinity", device, nodeSetSize, nodeSet, scope);
  }

  /**
   * {@return the code of {@code nvmlDeviceGetGpuFabricInfo}}
   *
   * @param device the device
   * @param gpuFabricInfo nvmlGpuFabricInfo_t, out
   */
  public int nvmlDeviceGetGpuFabricInfo(long device, ByteBuffer gpuFabricInfo) {
    return nvml.call("nvmlDeviceGetGpuFabricInfo", device, gpuFabricInfo);
  }

  /**
   * {@return the code of {@code nvmlDeviceGetTopologyCommonAncestor}}
   *
   * @param device1 a device
   * @param device2 another one
   * @param pathInfo int, out
   */
  public int nvmlDeviceGetTopologyCommonAncestor(long device1, long device2, ByteBuffer pathInfo) {
    return nvml.call("nvmlDeviceGetTopologyCommonAncestor", device1, device2, pathInfo);
  }

  /**
   * {@return the code of {@code nvmlDeviceGetNvLinkState}}
   *
   * @param device the device
   * @param link the link's number
   * @param isActive unsigned int, out
   */
  public int nvmlDeviceGetNvLinkState(long device, int link, ByteBuffer isActive) {
    return nvml.call("nvmlDeviceGetNvLinkState", device, link, isActive);
  }

  /**
   * {@return the code of {@code nvmlDeviceGetNvLinkRemoteDeviceType}}
   *
   * @param device the device
   * @param link the link's number
   * @param type unsigned int, out
   */
  public int nvmlDeviceGetNvLinkRemoteDeviceType(long device, int link, ByteBuffer type) {
    return nvml.call("nvmlDeviceGetNvLinkRemoteDeviceType", device, link, type);
  }

  /**
   * {@return the code of {@code nvmlDeviceGetNvLinkRemotePciInfo_v2}}
   *
   * @param device the device
   * @param link the link's number
   * @param pci nvmlPciInfo_t, out
   */
  public int nvmlDeviceGetNvLinkRemotePciInfo_v2(long device, int link, ByteBuffer pci) {
    return nvml.call("nvmlDeviceGetNvLinkRemotePciInfo_v2", device, link, pci);
  }

  /**
   * {@return the code of {@code nvmlDeviceGetVirtualizationMode}}
   *
   * @param device the device
   * @param virtualMode unsigned int, out
   */
  public int nvmlDeviceGetVirtualizationMode(long device, ByteBuffer virtualMode) {
    return nvml.call("nvmlDeviceGetVirtualizationMode", device, virtualMode);
  }

  /**
   * {@return the code of {@code nvmlDeviceGetHostVgpuMode}}
   *
   * @param device the device
   * @param hostVgpuMode unsigned int, out
   */
  public int nvmlDeviceGetHostVgpuMode(long device, ByteBuffer hostVgpuMode) {
    return nvml.call("nvmlDeviceGetHostVgpuMode", device, hostVgpuMode);
  }

  /**
   * {@return the code of {@code nvmlEventSetCreate}}
   *
   * @param set nvmlEventSet_t, out
   */
  public int nvmlEventSetCreate(ByteBuffer set) {
    return nvml.call("nvmlEventSetCreate", set);
  }

  /**
   * {@return the code of {@code nvmlEventSetFree}}
   *
   * @param set the set
   */
  public int nvmlEventSetFree(long set) {
    return nvml.call("nvmlEventSetFree", set);
  }

  /**
   * {@return the code of {@code nvmlDeviceGetSupportedEventTypes}}
   *
   * @param device the device
   * @param eventTypes unsigned long long, out
   */
  public int nvmlDeviceGetSupportedEventTypes(long device, ByteBuffer eventTypes) {
    return nvml.call("nvmlDeviceGetSupportedEventTypes", device, eventTypes);
  }

  /**
   * {@return the code of {@code nvmlDeviceRegisterEvents}}
   *
   * @param device the device
   * @param eventTypes one bit for each type
   * @param set the set
   */
  public int nvmlDeviceRegisterEvents(long device, long eventTypes, long set) {
    return nvml.call("nvmlDeviceRegisterEvents", device, eventTypes, set);
  }

  /**
   * {@return the code of {@code nvmlEventSetWait_v2}}
   *
   * @param set the set
   * @param data nvmlEventData_t, out
   * @param timeoutMs the longest wait
   */
  public int nvmlEventSetWait_v2(long set, ByteBuffer data, int timeoutMs) {
    return nvml.call("nvmlEventSetWait_v2", set, data, timeoutMs);
  }

  /**
   * {@return the code of {@code nvmlEventSetWait}}
   *
   * @param set the set
   * @param data nvmlEventData_t without its instances, out
   * @param timeoutMs the longest wait
   */
  public int nvmlEventSetWait(long set, ByteBuffer data, int timeoutMs) {
    return nvml.call("nvmlEventSetWait", set, data, timeoutMs);
  }
}
