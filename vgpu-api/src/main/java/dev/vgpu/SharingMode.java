package dev.vgpu;

/** How the tenants of a GPU share it at a moment. More may come. */
public enum SharingMode {
  /** Nobody uses it. */
  IDLE,
  /** One tenant uses it and nobody waits. */
  ALONE,
  /** Tenants use it together; only those above their share are held back. */
  OVERLAP,
  /** One tenant at a time, in turns. */
  STRICT
}
