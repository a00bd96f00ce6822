package dev.vgpu.cli.console;

import static java.nio.charset.StandardCharsets.UTF_8;
import static org.assertj.core.api.Assertions.assertThat;

import java.io.ByteArrayOutputStream;
import java.io.PrintStream;
import org.junit.jupiter.api.Test;

class HarmlessTextTest {
  private static final String TITLE = "\u001b]0;owned\u0007";

  @Test
  void nothingIsLeftThatATerminalObeys() {
    assertThat(HarmlessText.oneLine("a" + TITLE + "\r\n\t\u009b2J\u202eb\u007f"))
        .isEqualTo("a\ufffd]0;owned\ufffd\ufffd\ufffd\ufffd\ufffd2J\ufffdb\ufffd");
    assertThat(HarmlessText.oneLine("größe 5 µs 模型 😀…")).isEqualTo("größe 5 µs 模型 😀…");
  }

  @Test
  void streamsLetLinesThroughAndNothingElse() {
    ByteArrayOutputStream bytes = new ByteArrayOutputStream();
    Console console = Console.ofTerminal(new PrintStream(bytes, true, UTF_8), System.err);
    console.out().println("a" + TITLE + "\tb\u009b2J");
    console.out().print("\u00c2\u00a0é ");
    console.out().write(0xc2);
    console.out().write(0x9b);
    console.out().flush();
    assertThat(bytes.toString(UTF_8))
        .isEqualTo("a\ufffd]0;owned\ufffd\tb\ufffd2J\n\u00c2\u00a0é \ufffd");
    bytes.reset();
    console.outDrawn().print("\u001b[H");
    console.printStyled("@|bold x|@ " + TITLE);
    assertThat(bytes.toString(UTF_8)).startsWith("\u001b[H\u001b[1mx").doesNotContain(TITLE);
  }

  @Test
  void tablesHoldNothingElseEither() {
    assertThat(new TextTable("name").row("x" + TITLE + "\nSECOND").lines())
        .containsExactly("name", "x\ufffd]0;owned\ufffd\ufffdSECOND");
  }

  @Test
  void writersLearnThatNobodyReads() {
    PrintStream broken =
        new PrintStream(
            new java.io.OutputStream() {
              @Override
              public void write(int b) throws java.io.IOException {
                throw new java.io.IOException("closed");
              }
            },
            true,
            UTF_8);
    Console console = new Console(broken, System.err);
    console.out().println("x");
    assertThat(console.out().checkError()).isTrue();
  }
}
