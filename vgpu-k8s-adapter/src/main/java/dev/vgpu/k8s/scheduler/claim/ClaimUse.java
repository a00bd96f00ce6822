package dev.vgpu.k8s.scheduler.claim;

import dev.vgpu.fleet.model.Request;
import dev.vgpu.k8s.names.Driver;
import dev.vgpu.request.MemorySize;
import io.fabric8.kubernetes.api.model.resource.v1.DeviceRequestAllocationResult;
import io.fabric8.kubernetes.api.model.resource.v1.ResourceClaim;
import java.util.ArrayList;
import java.util.List;

/**
 * What a claim has of one GPU, as kube-scheduler has allocated it. Slots cannot have it. Immutable.
 *
 * @param name unique in the cluster; no pod and no gang has it
 * @param node the node
 * @param device the GPU's name in the node's slice
 * @param share percent
 * @param memory the quota
 */
public record ClaimUse(String name, String node, String device, int share, MemorySize memory) {
  private static final int WHOLE = 100;

  /** {@return what a claim has} */
  public static List<ClaimUse> of(ResourceClaim claim) {
    List<ClaimUse> all = new ArrayList<>();
    for (DeviceRequestAllocationResult one : ClaimConditions.taken(claim)) {
      long share = ClaimNeed.amount(one.getConsumedCapacity(), Driver.SHARE).orElse(WHOLE);
      all.add(
          new ClaimUse(
              "claim:" + claim.getMetadata().getUid() + ":" + all.size(),
              one.getPool(),
              one.getDevice(),
              (int) Math.max(1, Math.min(WHOLE, share)),
              MemorySize.ofBytes(
                  ClaimNeed.amount(one.getConsumedCapacity(), Driver.MEMORY).orElse(0))));
    }
    return all;
  }

  /** {@return it as a request; of its class nothing is known that could make room for others} */
  public Request request() {
    return Request.builder(name).share(share).memory(memory).build();
  }

  /** {@return its memory alone, if its share fits no more} */
  public Request withoutShare() {
    return Request.builder(name).bestEffort(1).memory(memory).build();
  }
}
