package dev.vgpu.files;

import java.util.Objects;

/** The place of a native file in a jar, which holds one for each architecture that it is for. */
public final class NativeResource {
  private NativeResource() {}

  /** {@return the place of a file for the architecture of this JVM} */
  public static String of(String name) {
    return of(name, System.getProperty("os.arch", ""));
  }

  /**
   * {@return the place of a file}
   *
   * @param name the file's name
   * @param architecture as {@code os.arch} names it
   */
  static String of(String name, String architecture) {
    Objects.requireNonNull(name, "name");
    String known = architecture.equals("amd64") ? "x86_64" : architecture;
    return "/META-INF/native/linux-" + known + "/" + name;
  }
}
