package dev.vgpu.k8s.node;

import io.fabric8.kubernetes.api.model.Quantity;
import io.fabric8.kubernetes.api.model.resource.v1.DeviceRequestAllocationResult;
import io.fabric8.kubernetes.api.model.resource.v1.DeviceRequestAllocationResultBuilder;
import io.fabric8.kubernetes.api.model.resource.v1.ResourceClaim;
import io.fabric8.kubernetes.client.utils.Serialization;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;

/** Claims in the form that the API server has after the scheduler has allocated them. */
public final class ClaimJson {
  private ClaimJson() {}

  /** A claim that got a share of a device. */
  public static String allocated(String name, String device, int share, String memory) {
    return allocated(name, device, Integer.toString(share), memory, "{}");
  }

  /** A claim whose only request got several devices. */
  static String allocated(String name, List<String> devices, int share, List<String> memory) {
    ResourceClaim claim =
        Serialization.unmarshal(
            allocated(name, devices.get(0), share, memory.get(0)), ResourceClaim.class);
    List<DeviceRequestAllocationResult> results = new ArrayList<>();
    for (int i = 0; i < devices.size(); i++) {
      results.add(
          new DeviceRequestAllocationResultBuilder(
                  claim.getStatus().getAllocation().getDevices().getResults().get(0))
              .withDevice(devices.get(i))
              .withShareID("a671734a-e8e5-11e4-8fde-42010af0932" + i)
              .addToConsumedCapacity("memory", new Quantity(memory.get(i)))
              .build());
    }
    claim.getStatus().getAllocation().getDevices().setResults(results);
    return Serialization.asJson(claim);
  }

  /** A claim for a part of a GPU in MIG mode: it has no share, and takes no capacity. */
  static String part(String name, String device) {
    return allocated(name, device, 1, "1")
        .replaceAll("\\s*\"shareID\":\"[^\"]*\",\\s*\"consumedCapacity\":\\{[^}]*}", "")
        .replace("\"device\":\"" + device + "\",", "\"device\":\"" + device + "\"");
  }

  /** A claim with parameters; {@code "{}"} for none. */
  static String allocated(
      String name, String device, String share, String memory, String parameters) {
    String config =
        parameters.equals("{}")
            ? "[]"
            : "[{\"source\":\"FromClaim\",\"requests\":[\"gpu\"],"
                + "\"opaque\":{\"driver\":\"vgpu.dev\",\"parameters\":"
                + parameters
                + "}}]";
    return String.format(
        Locale.ROOT,
        """
        {"apiVersion":"resource.k8s.io/v1","kind":"ResourceClaim",
         "metadata":{"name":"%s","namespace":"team"},
         "spec":{"devices":{"requests":[{"name":"gpu","exactly":{"deviceClassName":"vgpu.dev"}}]}},
         "status":{"allocation":{"devices":{
           "results":[{"request":"gpu","driver":"vgpu.dev","pool":"node-1","device":"%s",
             "shareID":"a671734a-e8e5-11e4-8fde-42010af09327",
             "consumedCapacity":{"share":"%s","memory":"%s"}}],
           "config":%s}}}}""",
        name,
        device,
        share,
        memory,
        config);
  }
}
