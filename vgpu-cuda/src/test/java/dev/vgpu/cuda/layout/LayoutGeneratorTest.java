package dev.vgpu.cuda.layout;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

class LayoutGeneratorTest {
  private static final Path SHM = Path.of("src/main/shm");
  private static final String BLOCK =
      """
      /* a comment, with CONST(X, 1, "") in it */
      CONST(LIMIT, 0x10, "of (all) things")
      BLOCK(page, 16, "a page")
      FIELD(page, u64, first, 0, seat, once, "one, and \\"only\\"")
      FIELD(page, u32, second, 8, seat, once, "")
      ARRAY(page, u8, 4, rest, 12, seat, once, "0")
      """;

  @Test
  void theLayoutIsTheOneThatWasFrozen() throws IOException {
    List<String> made =
        LayoutGenerator.text(LayoutGenerator.layout(Files.readString(SHM.resolve("vgpu_shm.def"))))
            .lines()
            .sorted()
            .toList();
    List<String> frozen =
        Files.readAllLines(Path.of("src/test/resources/vgpu_shm-1.golden")).stream()
            .sorted()
            .toList();
    assertThat(made)
        .as("a change of a row needs another LAYOUT_MAJOR and another golden file")
        .isEqualTo(frozen);
  }

  @Test
  void aNewerMinorOnlyNamesWhatWasReserved() throws IOException {
    List<String> made =
        Files.readAllLines(Path.of("src/test/resources/vgpu_shm-1.golden")).stream().toList();
    List<String> first =
        Files.readAllLines(Path.of("src/test/resources/vgpu_shm-1.0.golden")).stream()
            .filter(row -> !row.startsWith("CONST LAYOUT_MINOR"))
            .filter(row -> !row.contains(" reserved"))
            .toList();
    assertThat(made).containsAll(first);
  }

  @Test
  void textSaysEveryRow() {
    assertThat(LayoutGenerator.text(LayoutGenerator.layout(BLOCK)))
        .isEqualTo(
            """
            CONST LIMIT 16
            BLOCK page 16
            FIELD page first 0 8 u64
            FIELD page second 8 4 u32
            FIELD page rest 12 4 u8
            """);
  }

  @ParameterizedTest
  @CsvSource({
    "'second, 8', 'second, 12', gap",
    "'second, 8', 'second, 4', overlap",
    "'u32, second, 8', 'u64, second, 8', overlap",
    "'page, 16', 'page, 24', 'its fields end at 16'",
    "'second', 'first', 'there twice'",
    "'u8, 4', 'u8, 3', 'its fields end at 15'",
    "'u32, second', 'size_t, second', 'no known type'",
    "'LIMIT, 0x10', 'LIMIT, 0x10000000000000000', 'out of range'",
    "'u8, 4, rest, 12', 'u8, 4, rest, 12, 7', 'cells was expected'",
    "'CONST(LIMIT', 'CONSTANT(LIMIT', 'neither a row nor a comment'",
    "'FIELD(page, u32', 'FIELD(pages, u32', 'a field of no block'"
  })
  void mistakesAreRefused(String from, String to, String message) {
    String wrong = BLOCK.replace(from, to);
    assertThat(wrong).isNotEqualTo(BLOCK);
    assertThatThrownBy(() -> LayoutGenerator.layout(wrong))
        .isInstanceOf(IllegalArgumentException.class)
        .hasMessageContaining(message);
  }

  @Test
  void aMisalignedFieldIsRefused() {
    String wrong =
        """
        BLOCK(page, 12, "")
        FIELD(page, u32, first, 0, seat, once, "")
        FIELD(page, u64, second, 4, seat, once, "")
        """;
    assertThatThrownBy(() -> LayoutGenerator.layout(wrong)).hasMessageContaining("misaligned");
  }

  @Test
  void variablesAreReadAndNoneTwice() throws IOException {
    List<LayoutGenerator.Variable> variables =
        LayoutGenerator.variables(Files.readString(SHM.resolve("vgpu_env.def")));
    assertThat(variables).extracting(LayoutGenerator.Variable::name).contains("VGPU_RUN_DIR");
    assertThatThrownBy(() -> LayoutGenerator.variables("ENV(A, user, \"\")\nENV(A, lease, \"\")"))
        .hasMessageContaining("there twice: A");
  }
}
