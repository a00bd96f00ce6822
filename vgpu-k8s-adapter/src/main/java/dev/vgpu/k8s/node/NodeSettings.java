package dev.vgpu.k8s.node;

import dev.vgpu.k8s.names.KubeletResource;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;

/**
 * Where the {@code node} role works. Immutable.
 *
 * @param node the node's name in the cluster
 * @param pluginDirectory for its own socket and records
 * @param registryDirectory where the kubelet looks for plugins
 * @param devicePluginDirectory where the kubelet's socket for device plugins is
 * @param podResources the socket of the kubelet's pod resources service
 * @param cdiDirectory where the container runtime reads CDI files
 * @param slots how many containers may use the device plugin; 0 turns it off
 * @param resources other systems' resources that the device plugin offers too
 * @param metricsPort 0 selects any free port
 * @param offlineFloor the offline floor of each GPU, in percent
 * @param hasGangClaims whether pods with claims are bound only when their gangs are complete
 */
public record NodeSettings(
    String node,
    Path pluginDirectory,
    Path registryDirectory,
    Path devicePluginDirectory,
    Path podResources,
    Path cdiDirectory,
    int slots,
    List<KubeletResource> resources,
    int metricsPort,
    int offlineFloor,
    boolean hasGangClaims) {
  private static final int MOST_SLOTS = 1600;

  /** Checks the numbers. */
  public NodeSettings {
    resources = List.copyOf(resources);
    if (slots == 0 && !resources.isEmpty()) {
      throw new IllegalArgumentException(
          "the device plugin is off, so it offers no resources; give --slots: resources="
              + resources.stream().map(KubeletResource::resource).toList());
    }
    if (slots < 0 || slots > MOST_SLOTS) {
      throw new IllegalArgumentException("slots are not within 0 to " + MOST_SLOTS + ": " + slots);
    }
    if (node.isBlank()) {
      throw new IllegalArgumentException(
          "the node's name is blank; give --node-name, or NODE_NAME");
    }
  }

  /** {@return all resources that the device plugin offers} */
  List<KubeletResource> offered() {
    List<KubeletResource> all = new ArrayList<>(resources);
    if (slots > 0) {
      all.add(0, KubeletResource.SLOT);
    }
    return all;
  }
}
