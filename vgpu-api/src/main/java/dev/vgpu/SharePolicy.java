package dev.vgpu;

/**
 * How the compute share of a virtual GPU binds. Tenants with different policies may share one GPU.
 *
 * <p>Shares divide the GPU among tenants of classes {@code ONLINE} and {@code NEARLINE} together;
 * those of class {@code OFFLINE} divide the time that these leave to them.
 */
public enum SharePolicy {
  /**
   * No limit and no guarantee: N busy best-effort tenants each get an equal part of the time that
   * the others leave. Takes no {@code computePercent}.
   */
  BEST_EFFORT,

  /**
   * Never more than the share, even when the GPU is idle; never less when there is work. The cap
   * may be passed by one turn, and by the rest of a call that runs when the turn ends; that is paid
   * back at once.
   */
  FIXED_SHARE,

  /**
   * Never less than the share when there is work. Time that no tenant is guaranteed is shared in
   * equal parts among the burst and best-effort tenants that want it, and taken back when its owner
   * wants it again.
   */
  BURST_SHARE
}
