package dev.vgpu;

/** The effect when no backend can enforce the demands of a request. */
public enum FailureMode {
  /** The request is refused, with the reason. */
  REFUSE,

  /** The request is served with the available enforcement. The lack is logged as a warning. */
  OPEN
}
