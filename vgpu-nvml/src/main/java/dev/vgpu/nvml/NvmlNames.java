package dev.vgpu.nvml;

import dev.vgpu.nvml.binding.NvmlTypes;

/** Names for NVML's numbers. An unknown number stays a number. */
final class NvmlNames {
  private NvmlNames() {}

  static String architecture(int number) {
    return switch (number) {
      case 2 -> "Kepler";
      case 3 -> "Maxwell";
      case 4 -> "Pascal";
      case 5 -> "Volta";
      case 6 -> "Turing";
      case 7 -> "Ampere";
      case 8 -> "Ada";
      case 9 -> "Hopper";
      case 10 -> "Blackwell";
      default -> Integer.toUnsignedString(number);
    };
  }

  static String computeMode(int number) {
    return switch (number) {
      case NvmlTypes.NVML_COMPUTEMODE_DEFAULT -> "default";
      case NvmlTypes.NVML_COMPUTEMODE_PROHIBITED -> "prohibited";
      case NvmlTypes.NVML_COMPUTEMODE_EXCLUSIVE_PROCESS -> "exclusive process";
      default -> Integer.toUnsignedString(number);
    };
  }

  static String virtualization(int number) {
    return switch (number) {
      case NvmlTypes.NVML_GPU_VIRTUALIZATION_MODE_NONE -> "none";
      case NvmlTypes.NVML_GPU_VIRTUALIZATION_MODE_PASSTHROUGH -> "passed through to this VM";
      case NvmlTypes.NVML_GPU_VIRTUALIZATION_MODE_VGPU -> "vGPU in this VM";
      case NvmlTypes.NVML_GPU_VIRTUALIZATION_MODE_HOST_VGPU -> "host of vGPUs";
      case NvmlTypes.NVML_GPU_VIRTUALIZATION_MODE_HOST_VSGA -> "host of vSGA";
      default -> Integer.toUnsignedString(number);
    };
  }

  static String hostVgpu(int number) {
    return switch (number) {
      case NvmlTypes.NVML_HOST_VGPU_MODE_NON_SRIOV -> "no";
      case NvmlTypes.NVML_HOST_VGPU_MODE_SRIOV -> "yes";
      default -> Integer.toUnsignedString(number);
    };
  }

  /** {@return the name of a link's end that is no GPU} */
  static String linkEnd(int type) {
    return type == NvmlTypes.NVML_NVLINK_DEVICE_TYPE_SWITCH ? "switch" : "another device";
  }

  /** {@return whether a critical error is usually a program's own, and leaves the GPU intact} */
  static boolean isOfProgram(long xid) {
    return xid == 13 || xid == 31 || xid == 43 || xid == 45 || xid == 68 || xid == 69 || xid == 109;
  }

  /** {@return whether a critical error means that the GPU is lost} */
  static boolean isLoss(long xid) {
    return xid == 79;
  }

  static String xid(long number) {
    String words =
        switch ((int) Math.min(Math.max(number, 0), Integer.MAX_VALUE)) {
          case 13 -> "exception in a kernel";
          case 31 -> "a program accessed unmapped memory";
          case 43 -> "a program's channel was stopped after an error";
          case 45 -> "a program's channels were taken down";
          case 48 -> "an error of the memory that cannot be corrected";
          case 62 -> "the GPU's microcontroller halted";
          case 63 -> "a row or page of the memory was retired";
          case 64 -> "a row or page of the memory could not be retired";
          case 68, 69 -> "exception in an engine";
          case 74 -> "error of an NVLink connection";
          case 79 -> "the GPU fell off the bus";
          case 92 -> "many errors of the memory were corrected";
          case 94 -> "an error of the memory was contained: one program is ended";
          case 95 -> "an error of the memory was not contained: the GPU needs a reset";
          case 109 -> "a context did not give way in time";
          case 119, 120 -> "the GPU's system processor does not answer";
          default -> "critical error";
        };
    return words + " (XID " + Long.toUnsignedString(number) + ")";
  }
}
