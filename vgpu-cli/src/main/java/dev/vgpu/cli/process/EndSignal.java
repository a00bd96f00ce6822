package dev.vgpu.cli.process;

import java.lang.reflect.Proxy;

/** A signal that asks a process to end. */
public enum EndSignal {
  /** A terminal was closed. */
  HUP(1),
  /** Ctrl-C. */
  INT(2),
  /** The usual one. */
  TERM(15);

  private static final int SIGNALLED = 128;

  private final int number;

  EndSignal(int number) {
    this.number = number;
  }

  /** {@return the exit code of a process that it ended, as shells give it} */
  public int exitCode() {
    return SIGNALLED + number;
  }

  /** {@return whether a terminal sends it, and then to all processes in its foreground} */
  boolean isOfTerminal() {
    return this != TERM;
  }

  /**
   * Replaces what the JVM does when this process gets it, which is to shut down. Where the signal
   * is ignored, as under {@code nohup}, it stays so.
   *
   * @param action is run on a thread of its own, each time
   * @return whether that could be done
   */
  public boolean handle(Runnable action) {
    try {
      install(action);
      return true;
    } catch (ReflectiveOperationException | RuntimeException e) {
      return false;
    }
  }

  /** By reflection, because javac warns of {@code sun.misc.Signal}, and there is nothing else. */
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
