package dev.vgpu.bench.demo.child;

import static org.assertj.core.api.Assertions.assertThat;

import org.junit.jupiter.api.Test;

/** Tests how the demo's processes are ended. */
class ChildrenTest {
  /**
   * Exits with 7 if standard input stays open for a while after SIGTERM, with 5 if it is closed.
   * Each read has a time limit: a signal that comes right before bash starts to read is handled
   * only when that read has ended.
   */
  private static final String PROGRAM =
      "trap 'read -t 1 x; [ $? -gt 128 ] && exit 7; exit 5' TERM; echo ready; "
          + "while read -t 0.1 x; [ $? -gt 128 ]; do :; done; exit 6";

  @Test
  void aProcessHasItsInputWhileItEndsItself() throws Exception {
    Process process;
    try (Children children = new Children()) {
      process = children.start(new ProcessBuilder("bash", "-c", PROGRAM));
      assertThat(process.inputReader().readLine()).isEqualTo("ready");
    }
    assertThat(process.waitFor()).isEqualTo(7);
  }
}
