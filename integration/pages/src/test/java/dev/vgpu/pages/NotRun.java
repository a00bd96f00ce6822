package dev.vgpu.pages;

import static java.nio.charset.StandardCharsets.UTF_8;

import java.io.IOException;
import java.io.InputStream;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.Objects;

/**
 * The lines of pages that no test of this module runs, each with its reason ({@code not-run.txt}).
 */
final class NotRun {
  private NotRun() {}

  /** {@return the reasons, by the line} */
  static Map<String, String> reasons() throws IOException {
    Map<String, String> reasons = new LinkedHashMap<>();
    String reason = "";
    for (String line : text().lines().toList()) {
      if (line.isBlank()) {
        reason = "";
      } else if (line.startsWith("  ")) {
        if (reason.isEmpty() || reasons.put(line.strip(), reason) != null) {
          throw new AssertionError("without a reason, or twice: " + line);
        }
      } else {
        reason = reason.isEmpty() ? line : reason + " " + line;
      }
    }
    return reasons;
  }

  private static String text() throws IOException {
    try (InputStream in = NotRun.class.getResourceAsStream("not-run.txt")) {
      String text = new String(Objects.requireNonNull(in).readAllBytes(), UTF_8);
      return text.replaceAll("\\\\\n\\s*", "");
    }
  }
}
