package dev.vgpu.nvml;

import dev.vgpu.nvml.binding.NativeCalls;
import dev.vgpu.nvml.binding.Nvml;
import dev.vgpu.nvml.binding.NvmlState;
import dev.vgpu.nvml.binding.NvmlTypes;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Collections;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Optional;
import java.util.regex.Pattern;

/** Reads what stays constant while a driver is loaded. Confined to its session's thread. */
final class NvmlFacts {
  private static final Path PCI_DEVICES = Path.of("/sys/bus/pci/devices");
  private static final Pattern BUS_ID =
      Pattern.compile("[0-9A-Fa-f]{4,8}:[0-9A-Fa-f]{2}:[0-9A-Fa-f]{2}\\.[0-7]");
  private static final int NODE_WORDS = 16;
  private static final int SYSFS_DOMAIN = 4;

  /**
   * The properties of a device.
   *
   * @param fixed properties
   * @param linkEnds the remote end of each NVLink connection; an empty text if it is unknown
   */
  record Facts(Map<String, String> fixed, List<String> linkEnds) {
    /** {@return the fixed properties, then those that may change} */
    Map<String, String> properties(Map<String, String> modes) {
      Map<String, String> all = new LinkedHashMap<>(fixed);
      modes.entrySet().stream()
          .sorted(Map.Entry.comparingByKey())
          .forEach(mode -> all.put(mode.getKey(), mode.getValue()));
      return Collections.unmodifiableMap(all);
    }
  }

  private final NvmlSession session;
  private final NvmlState state;
  private final ByteBuffer number = NativeCalls.memory(Long.BYTES);
  private final ByteBuffer other = NativeCalls.memory(Long.BYTES);
  private final ByteBuffer pci = NativeCalls.memory(NvmlTypes.PCI_BYTES);
  private final ByteBuffer nodes = NativeCalls.memory(NODE_WORDS * Long.BYTES);

  NvmlFacts(NvmlSession session) {
    this.session = session;
    this.state = session.state();
  }

  Facts read(long device) {
    Map<String, String> fixed = new LinkedHashMap<>();
    session.parent(device).ifPresent(parent -> fixed.put("parent", parent));
    session.driverVersion().ifPresent(version -> fixed.put("driver_version", version));
    if (state.nvmlSystemGetCudaDriverVersion(number) == Nvml.NVML_SUCCESS) {
      int version = number.getInt(0);
      fixed.put("cuda_version", version / 1000 + "." + version % 1000 / 10);
    }
    if (state.nvmlDeviceGetArchitecture(device, number) == Nvml.NVML_SUCCESS) {
      fixed.put("architecture", NvmlNames.architecture(number.getInt(0)));
    }
    if (state.nvmlDeviceGetCudaComputeCapability(device, number, other) == Nvml.NVML_SUCCESS) {
      fixed.put("compute_capability", number.getInt(0) + "." + other.getInt(0));
    }
    Optional<String> bus = Optional.empty();
    if (state.nvmlDeviceGetPciInfo_v3(device, pci) == Nvml.NVML_SUCCESS) {
      bus = busId();
      bus.ifPresent(id -> fixed.put("pci", id));
    }
    numaNode(device, bus).ifPresent(node -> fixed.put("numa_node", node));
    if (session.sharesHostMemory(device)) {
      fixed.put(HostMemory.PROPERTY, HostMemory.VALUE);
    }
    if (state.nvmlDeviceGetEccMode(device, number, other) == Nvml.NVML_SUCCESS) {
      fixed.put("ecc_mode", number.getInt(0) == 1 ? "on" : "off");
    }
    if (state.nvmlDeviceGetVirtualizationMode(device, number) == Nvml.NVML_SUCCESS) {
      fixed.put("virtualization", NvmlNames.virtualization(number.getInt(0)));
    }
    if (state.nvmlDeviceGetHostVgpuMode(device, number) == Nvml.NVML_SUCCESS) {
      fixed.put("sriov", NvmlNames.hostVgpu(number.getInt(0)));
    }
    return new Facts(Collections.unmodifiableMap(fixed), linkEnds(device));
  }

  /** {@return the bus id that was read last, as the kernel writes it; empty if it is invalid} */
  private Optional<String> busId() {
    byte[] text = new byte[NvmlTypes.PCI_BYTES - NvmlTypes.PCI_BUS_ID];
    pci.get(NvmlTypes.PCI_BUS_ID, text);
    int end = 0;
    while (end < text.length && text[end] != 0) {
      end++;
    }
    String id = new String(text, 0, end, StandardCharsets.US_ASCII);
    return BUS_ID.matcher(id).matches()
        ? Optional.of(id.toLowerCase(Locale.ROOT))
        : Optional.empty();
  }

  /** {@return the nearest NUMA node, from NVML, else from the kernel} */
  private Optional<String> numaNode(long device, Optional<String> bus) {
    int code =
        state.nvmlDeviceGetMemoryAffinity(
            device, NODE_WORDS, nodes, NvmlTypes.NVML_AFFINITY_SCOPE_NODE);
    for (int i = 0; code == Nvml.NVML_SUCCESS && i < NODE_WORDS; i++) {
      long word = nodes.getLong(i * Long.BYTES);
      if (word != 0) {
        return Optional.of(Integer.toString(i * Long.SIZE + Long.numberOfTrailingZeros(word)));
      }
    }
    if (code == Nvml.NVML_SUCCESS || bus.isEmpty()) {
      return Optional.empty();
    }
    int domain = bus.get().indexOf(':');
    Path file =
        PCI_DEVICES.resolve(bus.get().substring(domain - SYSFS_DOMAIN)).resolve("numa_node");
    try {
      String node = Files.readString(file).strip();
      return node.startsWith("-") ? Optional.empty() : Optional.of(node);
    } catch (IOException e) {
      return Optional.empty();
    }
  }

  private List<String> linkEnds(long device) {
    List<String> ends = new ArrayList<>();
    for (int link = 0; link < NvmlTypes.NVML_NVLINK_MAX_LINKS; link++) {
      if (state.nvmlDeviceGetNvLinkState(device, link, number) != Nvml.NVML_SUCCESS) {
        break;
      }
      ends.add(linkEnd(device, link));
    }
    return Collections.unmodifiableList(ends);
  }

  private String linkEnd(long device, int link) {
    int typed = state.nvmlDeviceGetNvLinkRemoteDeviceType(device, link, number);
    if (typed == Nvml.NVML_SUCCESS && number.getInt(0) != NvmlTypes.NVML_NVLINK_DEVICE_TYPE_GPU) {
      return NvmlNames.linkEnd(number.getInt(0));
    }
    if (state.nvmlDeviceGetNvLinkRemotePciInfo_v2(device, link, pci) != Nvml.NVML_SUCCESS) {
      return "";
    }
    Optional<String> bus = busId();
    return bus.map(id -> session.uuidAt(id).orElse(id)).orElse("");
  }
}
