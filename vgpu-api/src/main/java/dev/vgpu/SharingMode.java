package dev.vgpu;

/** How the tenants of a GPU share it at a moment. More may come. */
public enum SharingMode {
  /** No tenant uses it. */
  IDLE,
  /** One tenant uses it, and none waits. */
  ALONE,
  /** Tenants use it together; only those above their share are held back. */
  OVERLAP,
  /** One tenant at a time, in turns. */
  STRICT
}
