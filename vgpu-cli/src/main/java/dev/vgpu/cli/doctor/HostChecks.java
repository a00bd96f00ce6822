package dev.vgpu.cli.doctor;

import static java.nio.charset.StandardCharsets.UTF_8;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.LinkOption;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import java.util.Set;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import java.util.stream.Stream;

/** Checks of the machine that matter for sharing a GPU. Reads files only. Immutable. */
public final class HostChecks {
  private static final long ENOUGH_LOCKED_BYTES = 8 << 20;
  private static final Set<String> QUICK_CLOCKS =
      Set.of("tsc", "kvm-clock", "arch_sys_counter", "hyperv_clocksource_tsc_page");
  private static final Pattern LOCKED =
      Pattern.compile("(?m)^Max locked memory\\s+(\\w+)\\s+(\\w+)\\s+bytes");
  private static final Pattern DRIVER = Pattern.compile("(\\d{3,4}\\.\\d+(\\.\\d+)?)");

  private final Path root;

  /**
   * Creates the checks.
   *
   * @param root the root of the machine's files: {@code /}, except in tests
   */
  public HostChecks(Path root) {
    this.root = root;
  }

  /** {@return the findings: a fixed number of checks, in a fixed order} */
  public List<Check> all() {
    List<Check> checks = new ArrayList<>();
    checks.add(driver());
    checks.add(lockedMemory());
    checks.add(cgroup());
    checks.add(clock());
    checks.add(devices());
    return checks;
  }

  private Optional<String> read(String path) {
    try {
      return Optional.of(Files.readString(root.resolve(path), UTF_8).strip());
    } catch (IOException | IllegalArgumentException e) {
      return Optional.empty();
    }
  }

  private boolean exists(String path) {
    return Files.exists(root.resolve(path), LinkOption.NOFOLLOW_LINKS);
  }

  private Check driver() {
    Optional<String> text = read("proc/driver/nvidia/version");
    if (text.isEmpty()) {
      return Check.good("driver", "no NVIDIA kernel driver is loaded; emulated GPUs stand in");
    }
    Matcher matcher = DRIVER.matcher(text.get());
    return matcher.find()
        ? Check.good("driver", "NVIDIA kernel driver " + matcher.group(1))
        : Check.poor(
            "driver",
            "an NVIDIA kernel driver of a version that cannot be read",
            "report it, with the bundle");
  }

  private Check lockedMemory() {
    Matcher matcher = LOCKED.matcher(read("proc/self/limits").orElse(""));
    if (!matcher.find()) {
      return Check.poor("locked-memory", "the limit cannot be read", "mount /proc");
    }
    String limit = matcher.group(1);
    if (limit.equals("unlimited")) {
      return Check.good("locked-memory", "unlimited");
    }
    if (!limit.matches("\\d{1,18}")) {
      return Check.poor("locked-memory", "the limit makes no sense: " + limit, "report it");
    }
    long bytes = Long.parseLong(limit);
    return bytes >= ENOUGH_LOCKED_BYTES
        ? Check.good("locked-memory", bytes / 1024 + " KiB")
        : Check.poor(
            "locked-memory",
            bytes / 1024 + " KiB",
            "programs pin host memory, and suspending moves GPU memory there: raise it (ulimit -l,"
                + " or LimitMEMLOCK of the service)");
  }

  private Check cgroup() {
    if (exists("sys/fs/cgroup/cgroup.controllers")) {
      return Check.good("cgroup", "version 2");
    }
    if (exists("sys/fs/cgroup/memory") || exists("sys/fs/cgroup/cpu")) {
      return Check.poor(
          "cgroup",
          "version 1",
          "version 2 tells a container's processes apart reliably: boot with"
              + " systemd.unified_cgroup_hierarchy=1");
    }
    return Check.poor("cgroup", "none is mounted", "mount cgroup2 at /sys/fs/cgroup");
  }

  private Check clock() {
    String file = "sys/devices/system/clocksource/clocksource0/current_clocksource";
    Optional<String> source = read(file);
    if (source.isEmpty()) {
      return Check.poor("clock", "its source cannot be read", "mount /sys");
    }
    return QUICK_CLOCKS.contains(source.get())
        ? Check.good("clock", source.get())
        : Check.poor(
            "clock",
            source.get(),
            "to read it takes a system call or longer, and each turn reads it: boot with"
                + " clocksource=tsc where the processor's is stable");
  }

  private boolean isContainer() {
    return exists(".dockerenv") || exists("run/.containerenv");
  }

  private boolean hasDeviceNodes() {
    try (Stream<Path> nodes = Files.list(root.resolve("dev"))) {
      return nodes.anyMatch(node -> node.getFileName().toString().matches("nvidia\\d+"));
    } catch (IOException e) {
      return false;
    }
  }

  /** A driver without device nodes means a container that was started without them. */
  private Check devices() {
    boolean container = isContainer();
    String where = container ? "in a container" : "on the host";
    if (!exists("proc/driver/nvidia/version")) {
      return Check.good("devices", where + ", without a driver");
    }
    if (hasDeviceNodes() && exists("dev/nvidiactl")) {
      return Check.good("devices", where + ", with the GPUs' device nodes");
    }
    return Check.bad(
        "devices",
        where + ", with a driver and without its device nodes",
        container
            ? "start the container with its GPUs (--gpus all, or a CDI device)"
            : "run nvidia-modprobe, or nvidia-smi once as root");
  }
}
