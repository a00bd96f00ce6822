package dev.vgpu.cli.machine;

import java.util.Map;

/** The version of this command, and the commit from which it was built, if known. */
public final class VersionText {
  private static final String UNPACKAGED = "development";

  private VersionText() {}

  /** {@return the jar's version; {@code development} without a jar} */
  public static String version() {
    String version = VersionText.class.getPackage().getImplementationVersion();
    return version == null ? UNPACKAGED : version;
  }

  /** {@return the commit of the source checkout, or {@code unknown}} */
  public static String commit(Map<String, String> environment) {
    return SourceCheckout.find(environment).flatMap(SourceCheckout::commit).orElse("unknown");
  }

  /** {@return version and commit, for people} */
  public static String line(Map<String, String> environment) {
    String commit = commit(environment);
    return "vgpu " + version() + (commit.equals("unknown") ? "" : " (commit " + commit + ")");
  }
}
