package dev.vgpu.cli.process;

import java.lang.reflect.Proxy;

/** A signal that asks a process to terminate. */
public enum EndSignal {
  /** Sent when a terminal is closed. */
  HUP(1),
  /** Sent on Ctrl-C. */
  INT(2),
  /** The default signal of {@code kill}. */
  TERM(15);

  private static final int SIGNALLED = 128;

  private final int number;

  EndSignal(int number) {
    this.number = number;
  }

  /** {@return the exit code that shells give to a process terminated by this signal} */
  public int exitCode() {
    return SIGNALLED + number;
  }

  /**
   * Replaces the JVM's handler, which shuts the JVM down. If the process ignores the signal, as
   * under {@code nohup}, it stays ignored.
   *
   * @param action runs on a separate thread, once per signal
   * @return whether the handler was replaced
   */
  public boolean handle(Runnable action) {
    try {
      install(action);
      return true;
    } catch (ReflectiveOperationException | RuntimeException e) {
      return false;
    }
  }

  /**
   * Uses reflection, because javac warns about {@code sun.misc.Signal}; there is no alternative.
   */
  private void install(Runnable action) throws ReflectiveOperationException {
    Class<?> signal = Class.forName("sun.misc.Signal");
    Class<?> handler = Class.forName("sun.misc.SignalHandler");
    Object proxy =
        Proxy.newProxyInstance(
            EndSignal.class.getClassLoader(),
            new Class<?>[] {handler},
            (self, method, arguments) -> {
              if (method.getName().equals("handle")) {
                action.run();
              }
              return null;
            });
    signal
        .getMethod("handle", signal, handler)
        .invoke(null, signal.getConstructor(String.class).newInstance(name()), proxy);
  }
}
