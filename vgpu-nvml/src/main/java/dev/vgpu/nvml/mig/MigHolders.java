package dev.vgpu.nvml.mig;

import dev.vgpu.GpuDriverException;
import dev.vgpu.request.GpuId;
import java.io.IOException;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.HashMap;
import java.util.List;
import java.util.Map;

/** The holders of our MIG instances, from the node's records. */
public final class MigHolders {
  private MigHolders() {}

  /**
   * {@return the leases by GPU and by instance number; if several share an instance, in order of
   * their names}
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
   * {@return the lease of each of our MIG devices}
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
