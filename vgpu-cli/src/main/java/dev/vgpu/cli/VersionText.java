package dev.vgpu.cli;

import dev.vgpu.cli.machine.SourceCheckout;
import java.util.Map;

/** The version of this command, and the commit that it was built from if that is known. */
final class VersionText {
  private static final String UNPACKAGED = "development";

  private VersionText() {}

  static String version() {
    String version = VersionText.class.getPackage().getImplementationVersion();
    return version == null ? UNPACKAGED : version;
  }

  static String commit(Map<String, String> environment) {
    return SourceCheckout.find(environment).flatMap(SourceCheckout::commit).orElse("unknown");
  }

  static String line(Map<String, String> environment) {
    String commit = commit(environment);
    return "vgpu " + version() + (commit.equals("unknown") ? "" : " (commit " + commit + ")");
  }
}
