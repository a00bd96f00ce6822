package dev.vgpu.cli.machine;

import java.util.Map;

/** The version of this command, and the commit that it was built from if that is known. */
public final class VersionText {
  private static final String UNPACKAGED = "development";

  private VersionText() {}

  /** {@return the version of the jar; {@code development} without one} */
  public static String version() {
    String version = VersionText.class.getPackage().getImplementationVersion();
    return version == null ? UNPACKAGED : version;
  }

  /** {@return the commit of the source checkout, or {@code unknown}} */
  public static String commit(Map<String, String> environment) {
    return SourceCheckout.find(environment).flatMap(SourceCheckout::commit).orElse("unknown");
  }

  /** {@return both for people} */
  public static String line(Map<String, String> environment) {
    String commit = commit(environment);
    return "vgpu " + version() + (commit.equals("unknown") ? "" : " (commit " + commit + ")");
  }
}
