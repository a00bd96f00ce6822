package dev.vgpu.k8s.scheduler.line;

/**
 * The answer for a pod that asks for a node. Immutable.
 *
 * @param kind which of the three answers
 * @param text the node's name, or why the pod waits
 */
public record Answer(Kind kind, String text) {
  /** Begins the reasons that kube-scheduler is told, and writes into the pods' conditions. */
  public static final String MARK = "vgpu: ";

  /** The three answers. */
  public enum Kind {
    /** It requests no GPU: any node will do. */
    ANY,

    /** It has a place on one node. */
    NODE,

    /** It waits or is refused. */
    NONE
  }

  static Answer any() {
    return new Answer(Kind.ANY, "");
  }

  static Answer node(String name) {
    return new Answer(Kind.NODE, name);
  }

  static Answer none(String reason) {
    return new Answer(Kind.NONE, reason);
  }
}
