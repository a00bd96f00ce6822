package dev.vgpu.cli.console;

import static org.assertj.core.api.Assertions.assertThat;

import org.junit.jupiter.api.Test;

class LinesTest {
  @Test
  void aLineThatFitsKeepsItsBlanks() {
    assertThat(Lines.fitting("a    b", 6)).containsExactly("a    b");
    assertThat(Lines.fitting("a    bc", 6)).containsExactly("a bc");
    assertThat(Lines.fitting("one two", 6)).containsExactly("one", "   two");
  }
}
