package dev.vgpu.cli.simulation;

import dev.vgpu.GpuSettings;
import dev.vgpu.cli.console.UserException;
import dev.vgpu.request.MemorySize;
import dev.vgpu.simulation.Mix;
import dev.vgpu.simulation.VirtualNode;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.jspecify.annotations.Nullable;

/**
 * A file that describes a simulation. {@code vgpu-cli/README.md} describes its format. Immutable.
 *
 * @param title the title for people
 * @param mix the tenants and GPUs to simulate
 */
public record MixFile(String title, Mix mix) {
  private static final long LONGEST_NS = 31L * 24 * 3_600 * 1_000_000_000L;
  private static final int MOST_GPUS = 64;
  private static final int MOST_TENANTS = 1_024;

  /** Values that replace those of the file. */
  public record Overrides(@Nullable Long seed, @Nullable Duration duration) {
    /** Replaces nothing. */
    public static final Overrides NONE = new Overrides(null, null);
  }

  /** A GPU, and its memory, which the scheduler does not know. */
  record FileGpu(Mix.Gpu gpu, @Nullable MemorySize memory) {}

  /**
   * Reads a file.
   *
   * @param path the file
   * @param overrides values that replace those of the file
   * @return the simulation that it describes
   * @throws UserException if it cannot be read, or is not valid; the message says where and why
   */
  public static MixFile read(Path path, Overrides overrides) throws UserException {
    Section root = SourceText.at(path).read("a mix");
    Value name = root.find("name");
    Value seed = root.find("seed");
    Value duration = root.find("duration");
    Value warmUp = root.find("warmUp");
    long warmUpNs = warmUp == null ? 0 : warmUp.time(0);
    long durationNs = duration == null ? 60_000_000_000L : duration.time(1_000_000_000L);
    if (overrides.duration() != null) {
      durationNs = overrides.duration().toNanos();
    }
    if (duration != null && durationNs > LONGEST_NS) {
      throw duration.error("a simulation is longer than 31 days: " + duration.text());
    }
    // Windows and points of the series are multiples of a step.
    long stepNs = 50_000_000;
    warmUpNs = warmUpNs / stepNs * stepNs;
    durationNs = Math.max(stepNs, durationNs / stepNs * stepNs);
    if (warmUp != null && warmUpNs >= durationNs) {
      throw warmUp.error("nothing is left to count: 'warmUp' is as long as the simulation");
    }
    List<FileGpu> gpus = gpus(root.find("gpus"));
    TenantReader reader = new TenantReader(path, gpus, root.find("enforcement"));
    reader.costs(root.find("costs"));
    Value tenants = root.get("tenants");
    root.end();
    List<TenantReader.FileTenant> found = new ArrayList<>();
    for (Value tenant : tenants.list()) {
      found.addAll(reader.read(tenant));
      if (found.size() > MOST_TENANTS) {
        throw tenant.error("more than " + MOST_TENANTS + " tenants");
      }
    }
    if (found.isEmpty()) {
      throw tenants.error("there is no tenant");
    }
    List<Mix.Member> members = new Stays(gpus, found).members(durationNs);
    long chosenSeed = seed == null ? 1 : seed.anyWhole();
    if (overrides.seed() != null) {
      chosenSeed = overrides.seed();
    }
    String title = name == null ? String.valueOf(path.getFileName()) : name.text();
    return new MixFile(
        title,
        new Mix(
            gpus.stream().map(FileGpu::gpu).toList(), members, durationNs, warmUpNs, chosenSeed));
  }

  private static List<FileGpu> gpus(@Nullable Value list) throws UserException {
    if (list == null) {
      Mix.Gpu only =
          new Mix.Gpu("gpu0", GpuSettings.defaults(), VirtualNode.SLICE_NS, VirtualNode.CHANGE_NS);
      return List.of(new FileGpu(only, null));
    }
    List<FileGpu> gpus = new ArrayList<>();
    Map<String, Value> names = new HashMap<>();
    for (Value value : list.list()) {
      Section section = value.section("a GPU");
      Value name = section.find("name");
      String text = name == null ? "gpu" + gpus.size() : name.text();
      if (names.put(text, value) != null) {
        throw (name == null ? value : name).error("two GPUs are called '" + text + "'");
      }
      gpus.add(gpu(text, section));
    }
    if (gpus.isEmpty() || gpus.size() > MOST_GPUS) {
      throw list.error("there are not 1 to " + MOST_GPUS + " GPUs: " + gpus.size());
    }
    return gpus;
  }

  private static FileGpu gpu(String name, Section section) throws UserException {
    GpuSettings.Builder settings = GpuSettings.builder();
    Value slice = section.find("slice");
    Value change = section.find("change");
    Value memory = section.find("memory");
    Value sharing = section.find("sharing");
    Value shortestTurn = section.find("shortestTurn");
    Value longestTurn = section.find("longestTurn");
    Value idleLinger = section.find("idleLinger");
    Value offlineFloor = section.find("offlineFloor");
    Value oversubscription = section.find("memoryOversubscription");
    section.end();
    try {
      if (sharing != null) {
        settings.sharing(
            sharing.word(
                Map.of("auto", GpuSettings.Sharing.AUTO, "strict", GpuSettings.Sharing.STRICT)));
      }
      if (shortestTurn != null) {
        settings.shortestTurn(Duration.ofNanos(shortestTurn.time(1)));
      }
      if (longestTurn != null) {
        settings.longestTurn(Duration.ofNanos(longestTurn.time(1)));
      }
      if (idleLinger != null) {
        settings.idleLinger(Duration.ofNanos(idleLinger.time(0)));
      }
      if (offlineFloor != null) {
        settings.offlineFloorPercent(offlineFloor.whole(0, 100));
      }
      if (oversubscription != null) {
        settings.memoryOversubscriptionPercent(oversubscription.whole(100, 1_000));
      }
      long sliceNs = slice == null ? VirtualNode.SLICE_NS : slice.time(1_000);
      long changeNs = change == null ? VirtualNode.CHANGE_NS : change.time(0);
      return new FileGpu(
          new Mix.Gpu(name, settings.build(), sliceNs, changeNs),
          memory == null ? null : memory.memory());
    } catch (IllegalArgumentException e) {
      throw section.error("GPU '" + name + "': " + e.getMessage(), e);
    }
  }
}
