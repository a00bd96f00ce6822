package dev.vgpu.request;

/**
 * How the compute share of a virtual GPU binds. Tenants with different policies may share one GPU.
 *
 * <p>Tenants of classes {@code ONLINE} and {@code NEARLINE} together divide the GPU by their
 * shares. Tenants of class {@code OFFLINE} divide the remaining time by theirs.
 */
public enum SharePolicy {
  /**
   * No limit and no guarantee: N busy best-effort tenants each get an equal part of the time that
   * the other tenants leave. Takes no {@code computePercent}.
   */
  BEST_EFFORT,

  /**
   * Never more than the share, even when the GPU is idle; never less when there is work. A tenant
   * may exceed the cap by one turn, and by the rest of a call that is running when the turn ends.
   * It pays that back at once.
   */
  FIXED_SHARE,

  /**
   * Never less than the share when there is work. Time that no tenant is guaranteed is divided
   * equally among the burst and best-effort tenants that want it. Guaranteed time that its owner
   * leaves unused is lent, and taken back when the owner wants it again.
   */
  BURST_SHARE
}
