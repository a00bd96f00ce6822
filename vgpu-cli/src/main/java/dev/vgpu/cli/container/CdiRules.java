package dev.vgpu.cli.container;

import com.fasterxml.jackson.databind.JsonNode;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Set;
import java.util.regex.Pattern;

/**
 * The rules for a file of the Container Device Interface, as its specification and the runtimes
 * that read it demand. A runtime ignores a file that breaks a rule, with all devices in it.
 */
public final class CdiRules {
  private static final Pattern VERSION =
      Pattern.compile("0\\.[3-8]\\.0|1\\.[01]\\.0", Pattern.DOTALL);
  private static final Pattern VENDOR =
      Pattern.compile("[A-Za-z]([A-Za-z0-9_.-]*[A-Za-z0-9])?", Pattern.DOTALL);
  private static final Pattern DEVICE_CLASS =
      Pattern.compile("[A-Za-z]([A-Za-z0-9_.-]*[A-Za-z0-9])?", Pattern.DOTALL);
  private static final Pattern DEVICE =
      Pattern.compile("[A-Za-z0-9]([A-Za-z0-9_.:-]*[A-Za-z0-9])?", Pattern.DOTALL);
  private static final Set<String> TOP =
      Set.of("cdiVersion", "kind", "annotations", "devices", "containerEdits");
  private static final Set<String> EDITS =
      Set.of("env", "deviceNodes", "mounts", "hooks", "intelRdt", "additionalGids", "netDevices");

  private final List<String> problems = new ArrayList<>();

  private CdiRules() {}

  /**
   * {@return the rules that a file breaks; empty if it breaks none}
   *
   * @param file the file's content
   */
  public static List<String> problems(JsonNode file) {
    CdiRules rules = new CdiRules();
    rules.check(file);
    return List.copyOf(rules.problems);
  }

  private void expect(boolean isRight, String problem) {
    if (!isRight) {
      problems.add(problem);
    }
  }

  private static boolean matches(Pattern pattern, JsonNode text) {
    return text.isTextual() && pattern.matcher(text.asText()).matches();
  }

  private void check(JsonNode file) {
    expect(file.isObject(), "it is no JSON object");
    file.fieldNames()
        .forEachRemaining(name -> expect(TOP.contains(name), "unknown field: " + name));
    expect(
        matches(VERSION, file.path("cdiVersion")), "cdiVersion is no version of the specification");
    String[] kind = file.path("kind").asText().split("/", -1);
    expect(
        kind.length == 2
            && VENDOR.matcher(kind[0]).matches()
            && DEVICE_CLASS.matcher(kind[1]).matches(),
        "kind is not VENDOR/CLASS: " + file.path("kind").asText());
    JsonNode devices = file.path("devices");
    expect(devices.isArray() && !devices.isEmpty(), "there is no device");
    Set<String> names = new HashSet<>();
    for (JsonNode device : devices) {
      String name = device.path("name").asText();
      expect(matches(DEVICE, device.path("name")), "not a device's name: " + name);
      expect(names.add(name), "two devices of one name: " + name);
      JsonNode edits = device.path("containerEdits");
      expect(edits.isObject() && !edits.isEmpty(), "a device without edits: " + name);
      checkEdits(edits);
    }
    checkEdits(file.path("containerEdits"));
  }

  private void checkEdits(JsonNode edits) {
    edits
        .fieldNames()
        .forEachRemaining(name -> expect(EDITS.contains(name), "unknown field: " + name));
    for (JsonNode variable : edits.path("env")) {
      expect(variable.asText().indexOf('=') > 0, "not NAME=VALUE: " + variable.asText());
    }
    for (JsonNode node : edits.path("deviceNodes")) {
      expect(isAbsolute(node.path("path")), "a device node without an absolute path: " + node);
    }
    for (JsonNode mount : edits.path("mounts")) {
      expect(
          isAbsolute(mount.path("hostPath")) && isAbsolute(mount.path("containerPath")),
          "a mount without absolute paths: " + mount);
      for (JsonNode option : mount.path("options")) {
        expect(option.isTextual() && !option.asText().isEmpty(), "not a mount's option: " + option);
      }
    }
  }

  private static boolean isAbsolute(JsonNode path) {
    return path.isTextual() && path.asText().startsWith("/");
  }
}
