package dev.vgpu.nvml.binding;

/** Structure offsets and constants of {@code nvml.h} that {@link NvmlState} uses. */
public final class NvmlTypes {
  /** {@code sizeof(nvmlUtilization_t)}. */
  public static final int UTILIZATION_BYTES = 8;

  /** {@code offsetof(nvmlUtilization_t, gpu)}. */
  public static final int UTILIZATION_GPU = 0;

  /** {@code offsetof(nvmlUtilization_t, memory)}. */
  public static final int UTILIZATION_MEMORY = 4;

  /** {@code sizeof(nvmlProcessUtilizationSample_t)}. */
  public static final int SAMPLE_BYTES = 32;

  /** {@code offsetof(nvmlProcessUtilizationSample_t, pid)}. */
  public static final int SAMPLE_PID = 0;

  /** {@code offsetof(nvmlProcessUtilizationSample_t, timeStamp)}. */
  public static final int SAMPLE_TIME = 8;

  /** {@code offsetof(nvmlProcessUtilizationSample_t, smUtil)}. */
  public static final int SAMPLE_SM = 16;

  /** {@code offsetof(nvmlProcessUtilizationSample_t, memUtil)}. */
  public static final int SAMPLE_MEMORY = 20;

  /** {@code offsetof(nvmlProcessUtilizationSample_t, encUtil)}. */
  public static final int SAMPLE_ENCODER = 24;

  /** {@code offsetof(nvmlProcessUtilizationSample_t, decUtil)}. */
  public static final int SAMPLE_DECODER = 28;

  /** {@code sizeof(nvmlPciInfo_t)}. */
  public static final int PCI_BYTES = 68;

  /** {@code offsetof(nvmlPciInfo_t, domain)}. */
  public static final int PCI_DOMAIN = 16;

  /** {@code offsetof(nvmlPciInfo_t, bus)}. */
  public static final int PCI_BUS = 20;

  /** {@code offsetof(nvmlPciInfo_t, device)}. */
  public static final int PCI_DEVICE = 24;

  /** {@code offsetof(nvmlPciInfo_t, busId)}. */
  public static final int PCI_BUS_ID = 36;

  /** {@code sizeof(nvmlEventData_t)}. */
  public static final int EVENT_BYTES = 32;

  /** {@code offsetof(nvmlEventData_t, device)}. */
  public static final int EVENT_DEVICE = 0;

  /** {@code offsetof(nvmlEventData_t, eventType)}. */
  public static final int EVENT_TYPE = 8;

  /** {@code offsetof(nvmlEventData_t, eventData)}. */
  public static final int EVENT_DATA = 16;

  /** {@code offsetof(nvmlEventData_t, gpuInstanceId)}. */
  public static final int EVENT_GPU_INSTANCE = 24;

  /** {@code offsetof(nvmlEventData_t, computeInstanceId)}. */
  public static final int EVENT_COMPUTE_INSTANCE = 28;

  /** {@code NVML_ERROR_UNINITIALIZED}. */
  public static final int NVML_ERROR_UNINITIALIZED = 1;

  /** {@code NVML_ERROR_INVALID_ARGUMENT}. */
  public static final int NVML_ERROR_INVALID_ARGUMENT = 2;

  /** {@code NVML_ERROR_NO_PERMISSION}. */
  public static final int NVML_ERROR_NO_PERMISSION = 4;

  /** {@code NVML_ERROR_TIMEOUT}. */
  public static final int NVML_ERROR_TIMEOUT = 10;

  /** {@code NVML_ERROR_GPU_IS_LOST}. */
  public static final int NVML_ERROR_GPU_IS_LOST = 15;

  /** {@code NVML_ERROR_RESET_REQUIRED}. */
  public static final int NVML_ERROR_RESET_REQUIRED = 16;

  /** {@code NVML_ERROR_LIB_RM_VERSION_MISMATCH}. */
  public static final int NVML_ERROR_LIB_RM_VERSION_MISMATCH = 18;

  /** {@code NVML_TEMPERATURE_GPU}. */
  public static final int NVML_TEMPERATURE_GPU = 0;

  /** {@code NVML_CLOCK_SM}. */
  public static final int NVML_CLOCK_SM = 1;

  /** {@code NVML_CLOCK_MEM}. */
  public static final int NVML_CLOCK_MEM = 2;

  /** {@code NVML_MEMORY_ERROR_TYPE_CORRECTED}. */
  public static final int NVML_MEMORY_ERROR_TYPE_CORRECTED = 0;

  /** {@code NVML_MEMORY_ERROR_TYPE_UNCORRECTED}. */
  public static final int NVML_MEMORY_ERROR_TYPE_UNCORRECTED = 1;

  /** {@code NVML_VOLATILE_ECC}. */
  public static final int NVML_VOLATILE_ECC = 0;

  /** {@code NVML_AGGREGATE_ECC}. */
  public static final int NVML_AGGREGATE_ECC = 1;

  /** {@code NVML_NVLINK_MAX_LINKS} of the newest headers; older ones have fewer. */
  public static final int NVML_NVLINK_MAX_LINKS = 36;

  /** {@code NVML_NVLINK_DEVICE_TYPE_GPU}. */
  public static final int NVML_NVLINK_DEVICE_TYPE_GPU = 0;

  /** {@code NVML_NVLINK_DEVICE_TYPE_SWITCH}. */
  public static final int NVML_NVLINK_DEVICE_TYPE_SWITCH = 2;

  /** {@code sizeof(nvmlGpuFabricInfo_t)}. */
  public static final int FABRIC_BYTES = 28;

  /** {@code offsetof(nvmlGpuFabricInfo_t, status)}; what is before it is the cluster's UUID. */
  public static final int FABRIC_STATUS = 16;

  /** {@code offsetof(nvmlGpuFabricInfo_t, cliqueId)}. */
  public static final int FABRIC_CLIQUE = 20;

  /** {@code offsetof(nvmlGpuFabricInfo_t, state)}; a byte. */
  public static final int FABRIC_STATE = 24;

  /** {@code NVML_GPU_FABRIC_STATE_COMPLETED}. */
  public static final int NVML_GPU_FABRIC_STATE_COMPLETED = 3;

  /** {@code NVML_AFFINITY_SCOPE_NODE}. */
  public static final int NVML_AFFINITY_SCOPE_NODE = 0;

  /** {@code NVML_COMPUTEMODE_DEFAULT}. */
  public static final int NVML_COMPUTEMODE_DEFAULT = 0;

  /** {@code NVML_COMPUTEMODE_PROHIBITED}. */
  public static final int NVML_COMPUTEMODE_PROHIBITED = 2;

  /** {@code NVML_COMPUTEMODE_EXCLUSIVE_PROCESS}. */
  public static final int NVML_COMPUTEMODE_EXCLUSIVE_PROCESS = 3;

  /** {@code NVML_HOST_VGPU_MODE_NON_SRIOV}. */
  public static final int NVML_HOST_VGPU_MODE_NON_SRIOV = 0;

  /** {@code NVML_HOST_VGPU_MODE_SRIOV}. */
  public static final int NVML_HOST_VGPU_MODE_SRIOV = 1;

  /** {@code NVML_GPU_VIRTUALIZATION_MODE_NONE}. */
  public static final int NVML_GPU_VIRTUALIZATION_MODE_NONE = 0;

  /** {@code NVML_GPU_VIRTUALIZATION_MODE_PASSTHROUGH}. */
  public static final int NVML_GPU_VIRTUALIZATION_MODE_PASSTHROUGH = 1;

  /** {@code NVML_GPU_VIRTUALIZATION_MODE_VGPU}. */
  public static final int NVML_GPU_VIRTUALIZATION_MODE_VGPU = 2;

  /** {@code NVML_GPU_VIRTUALIZATION_MODE_HOST_VGPU}. */
  public static final int NVML_GPU_VIRTUALIZATION_MODE_HOST_VGPU = 3;

  /** {@code NVML_GPU_VIRTUALIZATION_MODE_HOST_VSGA}. */
  public static final int NVML_GPU_VIRTUALIZATION_MODE_HOST_VSGA = 4;

  /** {@code nvmlEventTypeSingleBitEccError}. */
  public static final long EVENT_TYPE_SINGLE_BIT_ECC_ERROR = 1;

  /** {@code nvmlEventTypeDoubleBitEccError}. */
  public static final long EVENT_TYPE_DOUBLE_BIT_ECC_ERROR = 2;

  /** {@code nvmlEventTypeXidCriticalError}. */
  public static final long EVENT_TYPE_XID_CRITICAL_ERROR = 8;

  private NvmlTypes() {}
}
