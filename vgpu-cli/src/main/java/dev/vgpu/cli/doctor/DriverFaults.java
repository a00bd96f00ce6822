package dev.vgpu.cli.doctor;

import dev.vgpu.backend.BackendStatus;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

/**
 * Faults of GPUs that the driver lists, but that are missing from the pool. A GPU that does not
 * answer is left out when a pool is opened; only its provider's status mentions it.
 */
public final class DriverFaults {
  private static final String LEFT_OUT = "a GPU is left out";
  private static final String ALL_LEFT_OUT = "none of the driver's GPUs can be used";
  private static final String NO_GPU = "the driver has no GPU";
  private static final Pattern CODE = Pattern.compile("\\(NVML error (\\d+)\\)");
  private static final String NOT_ANSWERING =
      "the kernel's log says why: dmesg | grep Xid; as root: nvidia-smi --gpu-reset, or reboot";

  private DriverFaults() {}

  /**
   * {@return the faults, each with its remedy}
   *
   * @param statuses of providers and backends
   */
  public static List<String> of(List<BackendStatus> statuses) {
    List<String> faults = new ArrayList<>();
    for (BackendStatus status : statuses) {
      status.unavailableBecause().filter(DriverFaults::isFault).ifPresent(faults::add);
      status.notes().stream().filter(note -> note.startsWith(LEFT_OUT)).forEach(faults::add);
    }
    return faults.stream().distinct().map(DriverFaults::withRemedy).toList();
  }

  /** A machine without a driver has no fault: it may have no GPU. */
  private static boolean isFault(String reason) {
    return reason.contains(ALL_LEFT_OUT)
        || reason.contains(NO_GPU)
        || code(reason).equals(Optional.of("18"));
  }

  /**
   * {@return a problem, with a remedy if its NVML code suggests one}
   *
   * @param problem in the provider's words
   */
  public static String withRemedy(String problem) {
    String remedy =
        switch (code(problem).orElse("")) {
          case "4" -> "run it as a user who may use the GPU, or as root";
          case "15", "16" -> NOT_ANSWERING;
          case "18" ->
              "NVML's library and the kernel's driver have different versions, as after an update:"
                  + " reboot, or as root reload the driver's modules: rmmod nvidia_uvm nvidia_drm"
                  + " nvidia_modeset nvidia; modprobe nvidia";
          default -> "";
        };
    return remedy.isEmpty() ? problem : problem + " (" + remedy + ")";
  }

  private static Optional<String> code(String text) {
    Matcher matcher = CODE.matcher(text);
    return matcher.find() ? Optional.of(matcher.group(1)) : Optional.empty();
  }
}
