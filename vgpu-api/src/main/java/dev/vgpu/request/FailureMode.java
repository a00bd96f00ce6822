package dev.vgpu.request;

/** What happens if no backend can enforce the demands of a request. */
public enum FailureMode {
  /** The request is refused, with the reason. */
  REFUSE,

  /**
   * The request is served with the enforcement that is available. A warning in the log says what is
   * missing.
   */
  OPEN
}
