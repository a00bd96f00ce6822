package dev.vgpu.k8s.node;

import java.util.Locale;

/** Claims in the form that the API server has after the scheduler has allocated them. */
final class ClaimJson {
  private ClaimJson() {}

  static String allocated(String name, String device, int share, String memory) {
    return allocated(name, device, Integer.toString(share), memory, "{}");
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
