package dev.vgpu.files;

import java.io.IOException;
import java.nio.file.Path;
import java.util.Map;

/** The directory into which JNA unpacks its native library before loading it. JNA chooses it. */
public final class JnaPlace {
  private JnaPlace() {}

  /**
   * Checks the directory. Call this before JNA is loaded for the first time.
   *
   * @param environment this process's environment
   * @throws UntrustedFileException if another user could put another library there
   */
  public static void check(Map<String, String> environment) throws UntrustedFileException {
    String named = System.getProperty("jna.tmpdir", "");
    String cache = environment.getOrDefault("XDG_CACHE_HOME", "").strip();
    String home = System.getProperty("user.home", "/");
    Path place =
        named.isEmpty()
            ? (cache.isEmpty() ? Path.of(home, ".cache") : Path.of(cache)).resolve("JNA/temp")
            : Path.of(named);
    try {
      Path ignored = TrustedFiles.check(place.resolve("library"));
    } catch (UntrustedFileException e) {
      throw new UntrustedFileException(
          "JNA is not loaded from there: "
              + e.getMessage()
              + " (it is set by $XDG_CACHE_HOME and the property jna.tmpdir)");
    } catch (IOException e) {
      // If this process cannot look there, it cannot write there either, and JNA uses another
      // place.
    }
  }
}
