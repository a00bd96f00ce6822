package dev.vgpu.k8s.scheduler.line;

import java.util.List;
import java.util.Map;
import org.jspecify.annotations.Nullable;

/** How selectors of the API read labels. */
public final class Labels {
  private Labels() {}

  /** {@return whether labels fulfil a requirement of a selector} */
  public static boolean match(
      Map<String, String> labels, String key, String operator, List<String> values) {
    String value = labels.get(key);
    return switch (operator) {
      case "In" -> value != null && values.contains(value);
      case "NotIn" -> value == null || !values.contains(value);
      case "Exists" -> value != null;
      case "DoesNotExist" -> value == null;
      case "Gt" -> compare(value, values) > 0;
      case "Lt" -> compare(value, values) < 0;
      default -> true; // of a newer API server
    };
  }

  /** {@return the sign of value minus bound; 0 if they are not two whole numbers} */
  private static int compare(@Nullable String value, List<String> values) {
    try {
      return value == null || values.size() != 1
          ? 0
          : Long.compare(Long.parseLong(value), Long.parseLong(values.get(0)));
    } catch (NumberFormatException e) {
      return 0;
    }
  }
}
