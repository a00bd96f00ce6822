package dev.vgpu.cuda;

import static java.nio.charset.StandardCharsets.UTF_8;
import static org.assertj.core.api.Assertions.assertThat;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.HashSet;
import java.util.List;
import java.util.Set;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;

/** Every test that the list of the peers' defects names exists. */
class PeersDefectsTest {
  private static final Path LIST = Path.of("docs", "peers-defects.md");
  private static final Pattern JAVA = Pattern.compile("`(\\w+)\\.(\\w+)`");
  private static final Pattern C = Pattern.compile("`((?:test|role)_\\w+)`");

  @Test
  void everyEntryNamesTestsThatAreThere() throws Exception {
    String all = tests();
    Set<String> missing = new HashSet<>();
    List<String> entries =
        Stream.of(Files.readString(LIST, UTF_8).split("\n\n"))
            .filter(part -> part.startsWith("**"))
            .toList();
    assertThat(entries).hasSizeGreaterThan(20);
    for (String entry : entries) {
      boolean named = entry.contains("`vgpu bench ");
      Matcher java = JAVA.matcher(entry);
      while (java.find()) {
        named = true;
        if (!all.contains("class " + java.group(1) + " ")
            || !all.contains("void " + java.group(2) + "(")) {
          missing.add(java.group());
        }
      }
      Matcher c = C.matcher(entry);
      while (c.find()) {
        named = true;
        if (!all.contains("void " + c.group(1) + "(void)")) {
          missing.add(c.group());
        }
      }
      assertThat(named).as(entry).isTrue();
    }
    assertThat(missing).isEmpty();
  }

  /** The tests of this module, of the scheduler, of the benchmarks and of the command. */
  private static String tests() throws IOException {
    StringBuilder text = new StringBuilder();
    for (String module :
        List.of(".", "../vgpu-core", "../vgpu-simulation", "../vgpu-bench", "../vgpu-cli")) {
      Path root = Path.of(module, "src/test");
      try (Stream<Path> files = Files.walk(root)) {
        for (Path file : files.filter(each -> each.toString().matches(".*\\.(java|c)")).toList()) {
          text.append(Files.readString(file, UTF_8));
        }
      }
    }
    return text.toString();
  }
}
