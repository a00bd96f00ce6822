package dev.vgpu.cli.demo;

/** What the demo compares. In the order in which it is shown. */
public enum Phase {
  /** Online requests, with the device to themselves: the reference. */
  ONLINE_ALONE("online_alone", "online alone"),
  /** The offline job, with the device to itself. */
  OFFLINE_ALONE("offline_alone", "offline alone"),
  /** Both, and nobody controls who runs. */
  UNCONTROLLED("uncontrolled", "both, uncontrolled"),
  /** Both, under vgpu. */
  VGPU("vgpu", "both, with vgpu"),
  /** Two offline tenants with fixed shares. */
  FIXED_SHARE("fixed_share", "75/25 fixed share"),
  /** Two offline tenants with burst shares. */
  BURST_SHARE("burst_share", "75/25 burst share"),
  /** Six models in one JVM, two of which get a burst. */
  SIX_MODELS("six_models", "six models, a burst to two");

  private final String id;
  private final String title;

  Phase(String id, String title) {
    this.id = id;
    this.title = title;
  }

  /** {@return its name in JSON} */
  public String id() {
    return id;
  }

  /** {@return its name for people} */
  public String title() {
    return title;
  }
}
