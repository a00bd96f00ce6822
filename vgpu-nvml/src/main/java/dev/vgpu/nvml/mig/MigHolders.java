package dev.vgpu.nvml.mig;

import dev.vgpu.GpuDriverException;
import dev.vgpu.GpuId;
import java.io.IOException;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.HashMap;
import java.util.List;
import java.util.Map;

/** Whose MIG instances are ours, by the records of the node. */
public final class MigHolders {
  private MigHolders() {}

  /**
   * {@return whose instances are ours: the leases' names, by GPU and by the instances' numbers; of
   * one that several share, all in their order}
   *
   * @param runDirectory the node's
   * @throws GpuDriverException if the records cannot be read
   */
  public static Map<GpuId, Map<Integer, List<String>>> ofInstances(Path runDirectory) {
    Map<GpuId, Map<Integer, List<String>>> holders = new HashMap<>();
    for (MigRecord record : records(runDirectory)) {
      record
          .instance()
          .ifPresent(
              id ->
                  holders
                      .computeIfAbsent(record.gpu(), none -> new HashMap<>())
                      .computeIfAbsent(id, none -> new ArrayList<>())
                      .add(record.lease()));
    }
    return holders;
  }

  /**
   * {@return whose MIG devices are ours: the leases' names, by the devices}
   *
   * @param runDirectory the node's
   * @throws GpuDriverException if the records cannot be read
   */
  public static Map<GpuId, String> ofDevices(Path runDirectory) {
    Map<GpuId, String> holders = new HashMap<>();
    for (MigRecord record : records(runDirectory)) {
      record.device().ifPresent(device -> holders.put(device, record.lease()));
    }
    return holders;
  }

  private static List<MigRecord> records(Path runDirectory) {
    try {
      return MigRecord.all(MigEnforcement.directory(runDirectory)).values().stream()
          .sorted(Comparator.comparing(MigRecord::lease))
          .toList();
    } catch (IOException e) {
      throw new GpuDriverException("cannot read what was made: " + e.getMessage(), e);
    }
  }
}
