package dev.vgpu.watch;

/** How the tenants of a GPU share it at one moment. New values may be added. */
public enum SharingMode {
  /** No tenant uses it. */
  IDLE,
  /** One tenant uses it, and none waits. */
  ALONE,
  /** Several tenants use it together; only those at their fixed share are held back. */
  OVERLAP,
  /** One tenant at a time, in turns. */
  STRICT
}
