package dev.vgpu;

/** What happens when the enforcement that a request demands cannot be had. */
public enum FailureMode {
  /** The request is refused, with the reason. */
  REFUSE,

  /** The request is served with what can be had; the lack is logged as a warning. */
  OPEN
}
