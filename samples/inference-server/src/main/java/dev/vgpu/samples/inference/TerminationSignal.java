package dev.vgpu.samples.inference;

import java.lang.reflect.Proxy;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Runs code when the process is asked to end (SIGTERM, SIGINT), before the JVM's shutdown begins.
 *
 * <p>A shutdown hook is too late here: all hooks run concurrently, and ONNX Runtime's own hook
 * frees its environment while runs may still use it. One in six processes that were ended under
 * load crashed this way (onnxruntime issue 31352).
 */
final class TerminationSignal {
  private static final Logger LOG = LoggerFactory.getLogger(TerminationSignal.class);

  private TerminationSignal() {}

  /** The action, given the signal's number. */
  @FunctionalInterface
  interface Action {
    /** Ends the process. */
    void run(int number);
  }

  /** Replaces the JVM's handling of these signals. */
  static void handle(Action action) {
    for (String signal : new String[] {"TERM", "INT"}) {
      try {
        install(signal, action);
      } catch (ReflectiveOperationException | RuntimeException e) {
        LOG.warn("cannot handle a signal, the JVM's own handling stays: signal={}", signal, e);
      }
    }
  }

  /**
   * Uses reflection, because javac warns about {@code sun.misc.Signal}, and there is no
   * alternative.
   */
  private static void install(String name, Action action) throws ReflectiveOperationException {
    Class<?> signal = Class.forName("sun.misc.Signal");
    Class<?> handler = Class.forName("sun.misc.SignalHandler");
    int number = (int) signal.getMethod("getNumber").invoke(newSignal(signal, name));
    Object proxy =
        Proxy.newProxyInstance(
            TerminationSignal.class.getClassLoader(),
            new Class<?>[] {handler},
            (self, method, arguments) -> {
              if (method.getName().equals("handle")) {
                // Not on the JVM's own thread, which is a daemon: once the web server's threads
                // have ended, no other thread would keep the JVM alive until everything is closed.
                Thread thread = new Thread(() -> action.run(number), "termination");
                thread.setDaemon(false);
                thread.start();
              }
              return null;
            });
    signal.getMethod("handle", signal, handler).invoke(null, newSignal(signal, name), proxy);
  }

  private static Object newSignal(Class<?> signal, String name)
      throws ReflectiveOperationException {
    return signal.getConstructor(String.class).newInstance(name);
  }
}
