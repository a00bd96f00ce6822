package dev.vgpu.simulation.trace;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.io.BufferedReader;
import java.io.IOException;
import java.io.StringReader;
import java.nio.file.Files;
import java.nio.file.Path;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.EnumSource;

class TraceParserTest {
  private static final String FIRST = "2023-11-16 18:15:46.6805900,374,44\r\n";

  @TempDir private Path directory;

  @Test
  void readsTimesSinceTheFirstRequest() throws Exception {
    Trace trace =
        parse(TraceParser.HEADER + "\r\n" + FIRST + "2023-11-16 18:15:50.9951690,396,109");
    assertThat(trace.requests())
        .containsExactly(new TraceRequest(0, 374, 44), new TraceRequest(4_314_579_000L, 396, 109));
    assertThat(trace.start()).isEqualTo("2023-11-16T18:15:46.680590");
  }

  @Test
  @Timeout(30)
  void whatHasNoEndIsNotReadForEver() {
    assertThatThrownBy(() -> Trace.fromFile(Path.of("/dev/zero")))
        .isInstanceOf(TraceFormatException.class)
        .hasMessageContaining("line 1: longer than 1000 characters");
  }

  @Test
  void secondsNeedNoFraction() throws Exception {
    assertThat(parse(TraceParser.HEADER + "\n2023-11-16 18:15:46,0,1\n").requests())
        .containsExactly(new TraceRequest(0, 0, 1));
  }

  @ParameterizedTest
  @CsvSource(
      delimiter = '|',
      value = {
        "2023-11-16 18:15:47,abc,1 | ContextTokens is not a whole number from 0 to 2147483647:"
            + " 'abc'",
        "2023-11-16 18:15:47,-1,1 | ContextTokens is not a whole number from 0 to 2147483647: '-1'",
        "2023-11-16 18:15:47,1,99999999999"
            + " | GeneratedTokens is not a whole number from 0 to 2147483647: '99999999999'",
        "2023-11-16 18:15:47,1 | expected 3 columns, found 2 in '2023-11-16 18:15:47,1'",
        "2023-11-16 18:15:47,1,2,3 | expected 3 columns, found 4 in '2023-11-16 18:15:47,1,2,3'",
        "'' | expected 3 columns, found 1 in ''",
        "yesterday,1,2 | TIMESTAMP is not of the form '2023-11-16 18:15:46.68': 'yesterday'",
        "2023-13-16 18:15:47,1,2"
            + " | TIMESTAMP is not of the form '2023-11-16 18:15:46.68': '2023-13-16 18:15:47'",
        "2023-11-16 18:15:46,1,2 | TIMESTAMP is before the line above: '2023-11-16 18:15:46'",
        "9999-11-16 18:15:46,1,2 | TIMESTAMP is centuries after the first: 9999-11-16T18:15:46",
      })
  void corruptLineIsNamedWithWhatWasWrong(String line, String problem) {
    assertThatThrownBy(() -> parse(TraceParser.HEADER + "\n" + FIRST + line + "\n" + FIRST))
        .isInstanceOf(TraceFormatException.class)
        .hasMessage("line 3: " + problem);
  }

  @Test
  void otherHeaderIsRefused() {
    assertThatThrownBy(() -> parse("a,b,c\n"))
        .hasMessage("line 1: expected the header '" + TraceParser.HEADER + "', found 'a,b,c'");
  }

  @Test
  void emptyFileIsRefused() {
    assertThatThrownBy(() -> parse("")).hasMessage("line 1: the file is empty");
  }

  @Test
  void headerAloneIsRefused() {
    assertThatThrownBy(() -> parse(TraceParser.HEADER + "\n"))
        .hasMessage("line 2: no request after the header");
  }

  @Test
  void controlCharactersOfACorruptLineAreNotShown() {
    assertThatThrownBy(() -> parse(TraceParser.HEADER + "\n\u001b[31mred,1,2"))
        .hasMessageContaining("'?[31mred'");
  }

  @Test
  void fileMessageNamesTheFileAndTheLine() throws IOException {
    Path file = Files.writeString(directory.resolve("t.csv"), TraceParser.HEADER + "\nx");
    assertThatThrownBy(() -> Trace.fromFile(file))
        .isInstanceOf(TraceFormatException.class)
        .hasMessageStartingWith("trace " + file + ", line 2: expected 3 columns");
  }

  @Test
  void missingFileIsSaid() {
    assertThatThrownBy(() -> Trace.fromFile(directory.resolve("none.csv")))
        .isInstanceOf(TraceFormatException.class)
        .hasMessageContaining("does not exist");
  }

  @Test
  void fileThatIsNotTextIsRefused() throws IOException {
    Path file = Files.write(directory.resolve("t.csv"), new byte[] {(byte) 0xff, (byte) 0xfe, 0});
    assertThatThrownBy(() -> Trace.fromFile(file))
        .isInstanceOf(TraceFormatException.class)
        .hasMessageContaining("cannot be read");
  }

  @ParameterizedTest
  @EnumSource(Trace.Builtin.class)
  void builtinTracesAreWhole(Trace.Builtin builtin) {
    assertThat(builtin.load().requests()).hasSizeGreaterThan(1_000);
  }

  private static Trace parse(String text) throws TraceFormatException, IOException {
    return TraceParser.parse("test", new BufferedReader(new StringReader(text)));
  }
}
