package dev.vgpu.cuda;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;

/** Tests, on small sources, the check of C layers that the native builds run. */
@Timeout(value = 60, unit = TimeUnit.SECONDS)
class LayersTest {
  private static final Path CHECK = Path.of("../build/check-layers.sh").toAbsolutePath();

  @TempDir Path sources;
  @TempDir Path objects;

  private record Result(int status, String output) {}

  @BeforeEach
  void makeTwoLayers() throws Exception {
    Files.writeString(sources.resolve("layers"), "low\nhigh\n");
    write("low/low.h", "int low(void);\n");
    write("low/low.c", "#include \"low.h\"\nint low(void) { return 1; }\n");
    write("high/high.h", "#include \"../low/low.h\"\nint high(void);\n");
    write("high/high.c", "#include \"high.h\"\nint high(void) { return low(); }\n");
  }

  @Test
  void aHigherLayerMayUseALowerOne() throws Exception {
    Result result = check();
    assertThat(result.output()).isEmpty();
    assertThat(result.status()).isZero();
  }

  @Test
  void aCallUpwardsFails() throws Exception {
    write("low/call.c", "int high(void);\nint call(void);\nint call(void) { return high(); }\n");
    assertFails("low/call.c uses high of high/high.c, which is of a higher layer");
  }

  @Test
  void aVariableOfAHigherLayerFails() throws Exception {
    write("high/data.c", "int data = 1;\n");
    write(
        "low/read.c", "extern int data;\nint read_it(void);\nint read_it(void) { return data; }\n");
    assertFails("low/read.c uses data of high/data.c");
  }

  @Test
  void anIncludeUpwardsFails() throws Exception {
    write("low/include.c", "#include \"../high/high.h\"\nint unused;\n");
    assertFails("low/include.c includes ../high/high.h, which is of a higher layer");
  }

  @Test
  void aSourceOutsideOfTheLayersFails() throws Exception {
    write("other/other.c", "int other;\n");
    assertFails("other/other.c lies in no folder");
  }

  @Test
  void aSourceThatIsNotCompiledFails() throws Exception {
    compile();
    write("low/late.c", "int late;\n");
    Result result = run("sh", CHECK.toString(), sources.toString(), objects.toString());
    assertThat(result.output()).contains("low/late.c was not compiled");
    assertThat(result.status()).isNotZero();
  }

  private void assertFails(String reason) throws Exception {
    Result result = check();
    assertThat(result.output()).contains(reason);
    assertThat(result.status()).isNotZero();
  }

  private Result check() throws Exception {
    compile();
    return run("sh", CHECK.toString(), sources.toString(), objects.toString());
  }

  private void compile() throws Exception {
    String each =
        "cd \"$0\" && for file in */*.c; do mkdir -p \"$1/${file%/*}\" &&"
            + " cc -c -I. \"$file\" -o \"$1/$file.o\" || exit 1; done";
    Result result = run("sh", "-c", each, sources.toString(), objects.toString());
    assertThat(result.status()).as(result.output()).isZero();
  }

  private void write(String name, String text) throws IOException {
    Path file = sources.resolve(name);
    Files.createDirectories(file.getParent());
    Files.writeString(file, text);
  }

  private static Result run(String... command) throws Exception {
    Process process = new ProcessBuilder(command).redirectErrorStream(true).start();
    String output = new String(process.getInputStream().readAllBytes(), StandardCharsets.UTF_8);
    return new Result(process.waitFor(), output);
  }
}
