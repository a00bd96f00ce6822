package dev.vgpu.k8s.node.dra;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Locale;
import java.util.Optional;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

/**
 * The PCIe root complex of a device, as the attribute that drivers of several vendors share has it:
 * https://pkg.go.dev/k8s.io/dynamic-resource-allocation/deviceattribute
 */
final class PcieRoot {
  static final String ATTRIBUTE = "resource.kubernetes.io/pcieRoot";
  static final Path DEVICES = Path.of("/sys/bus/pci/devices");
  private static final Pattern BUS_ID = Pattern.compile("([0-9a-fA-F]{1,8}):(.+)");
  private static final Pattern ROOT = Pattern.compile("pci[0-9a-f]{4,8}:[0-9a-f]{2}");
  private static final int HEXADECIMAL = 16;

  private PcieRoot() {}

  /**
   * {@return the root, for example {@code pci0000:00}; empty if unknown}
   *
   * @param devices the kernel's directory with a link for each device
   * @param busId the device's address, with a domain of up to eight digits
   */
  static Optional<String> of(Path devices, String busId) {
    Matcher parts = BUS_ID.matcher(busId);
    if (!parts.matches()) {
      return Optional.empty();
    }
    // The kernel writes a domain with at least four digits, and NVML with eight.
    String name =
        String.format(
            Locale.ROOT,
            "%04x:%s",
            Long.parseLong(parts.group(1), HEXADECIMAL),
            parts.group(2).toLowerCase(Locale.ROOT));
    try {
      for (Path part : Files.readSymbolicLink(devices.resolve(name))) {
        if (ROOT.matcher(part.toString()).matches()) {
          return Optional.of(part.toString());
        }
      }
    } catch (IOException | UnsupportedOperationException e) {
      // The kernel has no such device, for example because the GPU is emulated.
    }
    return Optional.empty();
  }
}
