package dev.vgpu.bench.demo.figure;

/** The situations that the demo compares, in the order of its output. */
public enum Phase {
  /** Online requests, alone on the device: the reference. */
  ONLINE_ALONE("online_alone", "online alone"),
  /** The offline job, alone on the device. */
  OFFLINE_ALONE("offline_alone", "offline alone"),
  /** Both, without any control of the device. */
  UNCONTROLLED("uncontrolled", "both, uncontrolled"),
  /** Both, under vgpu. */
  VGPU("vgpu", "both, with vgpu"),
  /** Two offline tenants with fixed shares. */
  FIXED_SHARE("fixed_share", "75/25 fixed share"),
  /** Two offline tenants with burst shares. */
  BURST_SHARE("burst_share", "75/25 burst share"),
  /** Six models in one JVM; two of them get a burst of requests. */
  SIX_MODELS("six_models", "six models, a burst to two");

  private final String id;
  private final String title;

  Phase(String id, String title) {
    this.id = id;
    this.title = title;
  }

  /** {@return the phase's name in JSON} */
  public String id() {
    return id;
  }

  /** {@return the phase's name for people} */
  public String title() {
    return title;
  }
}
