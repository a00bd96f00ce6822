package dev.vgpu.k8s.node.dra;

import com.fasterxml.jackson.databind.JsonNode;
import dev.vgpu.request.Capabilities;
import dev.vgpu.request.PreemptionClass;
import dev.vgpu.request.SharePolicy;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Locale;
import java.util.Set;
import org.jspecify.annotations.Nullable;

/**
 * The opaque parameters of a claim or a device class. Later values override earlier ones.
 * Immutable.
 *
 * @param policy how the share binds; default {@link SharePolicy#FIXED_SHARE}
 * @param preemptionClass the class; default {@link PreemptionClass#NEARLINE}
 * @param offlineFloor the least offline floor that the GPU must have, 0 to 100 percent
 * @param isolation default {@link Capabilities.FaultIsolation#NONE}
 * @param compute default {@link Capabilities.Compute#NONE}
 */
public record ShareParameters(
    SharePolicy policy,
    PreemptionClass preemptionClass,
    int offlineFloor,
    Capabilities.FaultIsolation isolation,
    Capabilities.Compute compute) {
  static final String API_VERSION = "vgpu.dev/v1alpha1";
  static final String KIND = "ShareParameters";

  /** The defaults. */
  public static final ShareParameters DEFAULTS =
      new ShareParameters(
          SharePolicy.FIXED_SHARE,
          PreemptionClass.NEARLINE,
          0,
          Capabilities.FaultIsolation.NONE,
          Capabilities.Compute.NONE);

  private static final Set<String> FIELDS =
      Set.of("apiVersion", "kind", "policy", "class", "offlineFloorPercent", "require");
  private static final Set<String> REQUIRED = Set.of("faults", "compute");

  /**
   * {@return these parameters, overridden by those in a text}
   *
   * @param text the parameters' JSON
   * @throws IllegalArgumentException if a field or its value is unknown; the message names the
   *     field, and the accepted values
   */
  public ShareParameters with(JsonNode text) {
    requireKnown(text, FIELDS, "");
    requireText(text, "apiVersion", API_VERSION);
    requireText(text, "kind", KIND);
    JsonNode require = text.path("require");
    if (!require.isMissingNode()) {
      requireKnown(require, REQUIRED, "require.");
    }
    return new ShareParameters(
        word(SharePolicy.class, text, "policy", policy),
        word(PreemptionClass.class, text, "class", preemptionClass),
        floor(text.path("offlineFloorPercent")),
        word(Capabilities.FaultIsolation.class, require, "faults", isolation),
        word(Capabilities.Compute.class, require, "compute", compute));
  }

  private static void requireKnown(JsonNode object, Set<String> known, String prefix) {
    if (!object.isObject()) {
      throw new IllegalArgumentException("the parameters are no object: " + prefix + object);
    }
    List<String> unknown = new ArrayList<>();
    object.fieldNames().forEachRemaining(unknown::add);
    unknown.removeAll(known);
    if (!unknown.isEmpty()) {
      throw new IllegalArgumentException(
          "unknown parameter: "
              + prefix
              + unknown.get(0)
              + " (there are "
              + String.join(", ", known.stream().sorted().toList())
              + ")");
    }
  }

  private static void requireText(JsonNode text, String field, String expected) {
    if (!text.path(field).asText().equals(expected)) {
      throw new IllegalArgumentException(
          "parameter " + field + " is not " + expected + ": " + text.path(field));
    }
  }

  private int floor(JsonNode value) {
    if (value.isMissingNode()) {
      return offlineFloor;
    }
    if (!value.isInt() || value.asInt() < 0 || value.asInt() > 100) {
      throw new IllegalArgumentException(
          "parameter offlineFloorPercent is not within 0 to 100: " + value);
    }
    return value.asInt();
  }

  /**
   * {@return the constant that a field names, for example {@code burst-share}}
   *
   * @param <E> the constant's type
   * @param type the constant's type
   * @param text a JSON object
   * @param field the field
   * @param otherwise the default if the field is absent
   * @throws IllegalArgumentException if there is no such constant
   */
  public static <E extends Enum<E>> E word(
      Class<E> type, JsonNode text, String field, @Nullable E otherwise) {
    JsonNode value = text.path(field);
    if (value.isMissingNode() && otherwise != null) {
      return otherwise;
    }
    List<String> words = Arrays.stream(type.getEnumConstants()).map(ShareParameters::word).toList();
    int found = words.indexOf(value.asText());
    if (!value.isTextual() || found < 0) {
      throw new IllegalArgumentException(
          "parameter " + field + " is none of " + String.join(", ", words) + ": " + value);
    }
    return type.getEnumConstants()[found];
  }

  /**
   * {@return the word for a constant}
   *
   * @param constant for example {@code BURST_SHARE}
   */
  public static String word(Enum<?> constant) {
    return constant.name().toLowerCase(Locale.ROOT).replace('_', '-');
  }
}
