package dev.vgpu.bench.demo.child;

import dev.vgpu.bench.harness.NanoClock;
import java.io.IOException;
import java.io.InputStream;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import java.util.Arrays;

/**
 * Runs another main class, and exits when standard input closes. The demo holds the other end of
 * that pipe, and the kernel closes it however the demo dies, so no child outlives the demo. Depends
 * on no other jar, because it runs on the class path of another program.
 */
public final class ChildProcess {
  private static final long GRACE_MS = 3_000;

  private ChildProcess() {}

  /**
   * Runs {@code main} of the class that the first argument names, with the other arguments.
   *
   * @param args a class, then its arguments
   * @throws Exception what that class throws
   */
  public static void main(String[] args) throws Exception {
    Thread watcher = new Thread(ChildProcess::awaitEndOfInput, "vgpu-parent-watch");
    watcher.setDaemon(true);
    watcher.start();
    Method main = Class.forName(args[0]).getMethod("main", String[].class);
    try {
      main.invoke(null, (Object) Arrays.copyOfRange(args, 1, args.length));
    } catch (InvocationTargetException e) {
      if (e.getCause() instanceof Exception cause) {
        throw cause;
      }
      throw e;
    }
  }

  private static void awaitEndOfInput() {
    try {
      InputStream input = System.in;
      while (input.read() >= 0) {
        // The content does not matter: any input means that the parent is alive.
      }
    } catch (IOException e) {
      // Treated as the end of input.
    }
    Thread killer = new Thread(ChildProcess::haltLater, "vgpu-halt");
    killer.setDaemon(true);
    killer.start();
    System.exit(0);
  }

  /** Ends the process even if a shutdown hook of the main class never returns. */
  private static void haltLater() {
    try {
      NanoClock.sleepMillis(GRACE_MS);
    } catch (InterruptedException e) {
      // Nothing interrupts this thread, and halting early does no harm.
    }
    Runtime.getRuntime().halt(1);
  }
}
