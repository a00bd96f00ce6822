package dev.vgpu.testing;

/** The version of the kernel on which the tests run. */
public final class KernelVersion {
  private KernelVersion() {}

  /** {@return whether it is that version or a later one} */
  public static boolean isAtLeast(int major, int minor) {
    String[] numbers = System.getProperty("os.version", "").split("[^0-9]+", 3);
    int here = Integer.parseInt(numbers[0]);
    return here > major || (here == major && Integer.parseInt(numbers[1]) >= minor);
  }
}
