package dev.vgpu.k8s.scheduler;

/**
 * What becomes of a pod that asks for a node. Immutable.
 *
 * @param kind which of the three
 * @param text the node's name, or why it waits
 */
record Answer(Kind kind, String text) {
  enum Kind {
    /** It asks for no GPU: any node will do. */
    ANY,

    /** It has a place on one node. */
    NODE,

    /** It waits, or is refused. */
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
