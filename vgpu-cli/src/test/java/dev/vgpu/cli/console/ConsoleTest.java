package dev.vgpu.cli.console;

import static java.nio.charset.StandardCharsets.UTF_8;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.vgpu.cli.time.NanoClock;
import java.io.ByteArrayOutputStream;
import java.io.OutputStream;
import java.io.PrintStream;
import java.time.Duration;
import java.time.Instant;
import java.util.Map;
import org.junit.jupiter.api.Test;

class ConsoleTest {
  private final ByteArrayOutputStream out = new ByteArrayOutputStream();
  private final ByteArrayOutputStream err = new ByteArrayOutputStream();
  private final Console console =
      new Console(new PrintStream(out, true, UTF_8), new PrintStream(err, true, UTF_8));

  @Test
  void aTableIsShortenedInTheMiddleOfTheColumnsThatAreNamed() {
    TextTable table =
        new TextTable("name", "device", "lease")
            .row("a", "GPU-0123456789-0123456789", "a-lease-of-a-long-name-17");
    assertThat(table.lines(100, 2, 1)).isEqualTo(table.lines());
    assertThat(table.lines(50, 2, 1).get(1))
        .isEqualTo("a     GPU-0123456789-0123456789  a-lease-…-name-17");
    assertThat(table.lines(40, 2, 1)).allMatch(line -> line.length() <= 40);
    assertThat(table.lines(40, 2, 1).get(1)).contains("GPU-01").endsWith("…e-17");
  }

  @Test
  void aTerminalIsAsWideAsItSaysAndAPipeHasNoWidth() {
    PrintStream none = new PrintStream(OutputStream.nullOutputStream(), true, UTF_8);
    assertThat(Console.ofTerminal(none, none, 132).tableWidth()).isEqualTo(132);
    assertThat(Console.ofTerminal(none, none, 132).textWidth()).isEqualTo(132);
    assertThat(Console.ofTerminal(none, none).tableWidth()).isEqualTo(80);
    assertThat(Console.ofTerminal(none, none, 40).textWidth()).isEqualTo(80);
    assertThat(new Console(none, none).textWidth()).isEqualTo(80);
    assertThat(new Console(none, none).tableWidth()).isEqualTo(Integer.MAX_VALUE);
    assertThat(TerminalWidth.of(Map.of("COLUMNS", "132"))).isEqualTo(132);
    assertThat(TerminalWidth.of(Map.of("COLUMNS", "-1"))).isBetween(80, 1000);
  }

  @Test
  void columnsAreAligned() {
    assertThat(new TextTable("name", "n").row("long name", "1").row("b", "1000").lines())
        .containsExactly("name          n", "long name     1", "b          1000");
  }

  @Test
  void rowOfAnotherWidthIsRefused() {
    assertThatThrownBy(() -> new TextTable("a", "b").row("1"))
        .isInstanceOf(IllegalArgumentException.class);
  }

  @Test
  void progressInAFileIsOneLineAStepOnStandardError() throws InterruptedException {
    StoppedClock clock = new StoppedClock();
    try (Progress progress = new Progress(console, clock, 2)) {
      progress.begin("first");
      progress.await(Duration.ofSeconds(3));
      progress.begin("second");
      progress.say("a remark");
    }
    assertThat(err.toString(UTF_8)).isEqualTo("[1/2] first\n[2/2] second\na remark\n");
    assertThat(out.toString(UTF_8)).isEmpty();
    assertThat(clock.nowNs).isEqualTo(3_000_000_000L);
  }

  @Test
  void otherStreamsHaveNoColour() {
    assertThat(console.outAnsi().enabled()).isFalse();
    assertThat(console.errAnsi().enabled()).isFalse();
  }

  /** A clock that advances only while someone waits on it. */
  private static final class StoppedClock implements NanoClock {
    private long nowNs;

    @Override
    public long nowNs() {
      return nowNs;
    }

    @Override
    public Instant wallTime() {
      return Instant.EPOCH;
    }

    @Override
    public void sleepUntil(long deadlineNs) {
      nowNs = Math.max(nowNs, deadlineNs);
    }
  }
}
