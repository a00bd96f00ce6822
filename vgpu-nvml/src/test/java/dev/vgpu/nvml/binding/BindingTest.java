package dev.vgpu.nvml.binding;

import static java.nio.charset.StandardCharsets.UTF_8;
import static org.assertj.core.api.Assertions.assertThat;

import java.io.IOException;
import java.lang.reflect.Field;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/**
 * Compares the binding's sizes, offsets and constants with C: with the emulator's declarations, and
 * with the vendor's header if the CUDA toolkit, or the directory in {@code VGPU_NVML_INCLUDE}, has
 * it.
 */
class BindingTest {
  @TempDir Path directory;

  /** {@return the numbers that the compiled probe prints, by name} */
  private Map<String, Long> probe(List<String> flags) throws IOException, InterruptedException {
    Path program = directory.resolve("probe");
    List<String> command = new ArrayList<>(List.of("cc", "-std=c11"));
    command.addAll(flags);
    command.addAll(List.of("src/test/c/nvml_probe.c", "-o", program.toString()));
    Process compiler = new ProcessBuilder(command).redirectErrorStream(true).start();
    String said = new String(compiler.getInputStream().readAllBytes(), UTF_8);
    assertThat(compiler.waitFor()).as(said).isZero();
    Process process = new ProcessBuilder(program.toString()).start();
    Map<String, Long> numbers = new HashMap<>();
    for (String line :
        new String(process.getInputStream().readAllBytes(), UTF_8).lines().toList()) {
      String[] words = line.split(" ", 2);
      numbers.put(words[0], Long.valueOf(words[1]));
    }
    assertThat(process.waitFor()).isZero();
    return numbers;
  }

  private static Map<String, Long> ours() throws IllegalAccessException {
    Map<String, Long> numbers = new HashMap<>();
    for (Class<?> type : List.of(Nvml.class, NvmlTypes.class, NvmlMig.class)) {
      for (Field field : type.getFields()) {
        numbers.put(field.getName(), ((Number) field.get(null)).longValue());
      }
    }
    return numbers;
  }

  @Test
  void constantsAreThoseOfTheEmulator() throws Exception {
    Map<String, Long> theirs = probe(List.of("-I../vgpu-emulator/src/main/c/base"));
    assertThat(theirs).hasSizeGreaterThan(60);
    assertThat(ours()).containsAllEntriesOf(theirs);
  }

  /** {@return the vendor's include directory; empty, with a printed note, if there is none} */
  private static Optional<Path> vendorsHeader() {
    String named = System.getenv("VGPU_NVML_INCLUDE");
    Path include = Path.of(named == null ? "/usr/local/cuda/include" : named);
    if (Files.exists(include.resolve("nvml.h"))) {
      return Optional.of(include);
    }
    System.out.println("no nvml.h in " + include + ", so nothing was compared with it");
    return Optional.empty();
  }

  @Test
  void constantsAreThoseOfTheVendorsHeader() throws Exception {
    Optional<Path> include = vendorsHeader();
    if (include.isEmpty()) {
      return;
    }
    Map<String, Long> theirs = probe(List.of("-DTHEIRS", "-isystem", include.get().toString()));
    Map<String, Long> shared = ours();
    shared.keySet().retainAll(theirs.keySet());
    assertThat(shared).isEqualTo(theirs);
    // Everything in the binding is checked, except counts that grow with the headers.
    Map<String, Long> unchecked = ours();
    unchecked.keySet().removeAll(theirs.keySet());
    assertThat(unchecked.keySet())
        .containsExactlyInAnyOrder(
            "NVML_NVLINK_MAX_LINKS", "GPU_INSTANCE_PROFILES", "COMPUTE_INSTANCE_PROFILES");
  }

  @Test
  void functionsOfTheEmulatorAreThoseOfTheVendorsHeader() throws Exception {
    Optional<Path> include = vendorsHeader();
    if (include.isEmpty()) {
      return;
    }
    List<String> command =
        new ArrayList<>(
            List.of("cc", "-std=c11", "-D_GNU_SOURCE", "-DEMU_VENDORS_NVML", "-fsyntax-only"));
    Path sources = Path.of("../vgpu-emulator/src/main/c");
    command.addAll(List.of("-w", "-I" + sources, "-isystem", include.get().toString()));
    try (Stream<Path> files = Files.list(sources.resolve("nvml"))) {
      files.map(Path::toString).filter(name -> name.endsWith(".c")).forEach(command::add);
    }
    Process compiler = new ProcessBuilder(command).redirectErrorStream(true).start();
    String said = new String(compiler.getInputStream().readAllBytes(), UTF_8);
    assertThat(compiler.waitFor()).as(said).isZero();
  }
}
