package dev.vgpu.samples.cuda;

import java.util.Arrays;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;

/**
 * Keeps the GPU busy with kernels that take a given time, and reports the share that it got. It
 * does not know about vgpu. Exit codes: 0 done, 1 failed, 2 wrong usage, 130 or 143 ended by a
 * signal.
 */
public final class Spin {
  private static final long END_SECONDS = 10;

  private Spin() {}

  /**
   * Runs it.
   *
   * @param args see {@code --help}
   */
  public static void main(String[] args) {
    if (Arrays.asList(args).contains("--help")) {
      System.out.println("Usage: Spin [OPTIONS]");
      System.out.print(Spinning.help());
      return;
    }
    int exitCode = run(args);
    if (exitCode != 0) {
      System.exit(exitCode);
    }
  }

  private static int run(String... args) {
    Spinning spinning;
    try {
      spinning = new Spinning(new SpinArguments(Spinning.options(), args));
    } catch (IllegalArgumentException e) {
      System.err.println("Spin: " + e.getMessage());
      System.err.println("Run it with --help to see what can be given.");
      return 2;
    }
    return spin(spinning, "Spin");
  }

  /**
   * Spins until the end, or until a signal asks this JVM to end. Prints the result so far in either
   * case.
   */
  static int spin(Spinning spinning, String program) {
    CountDownLatch printed = new CountDownLatch(1);
    Thread hook = new Thread(() -> stopAndAwait(spinning, printed), "spin-end");
    Runtime.getRuntime().addShutdownHook(hook);
    try (Cuda cuda = Cuda.open(0)) {
      String device = cuda.name();
      spinning.run(cuda);
      System.out.println(spinning.result(device));
      return 0;
    } catch (CudaException e) {
      System.err.println(program + ": " + e.getMessage());
      return 1;
    } finally {
      printed.countDown();
    }
  }

  private static void stopAndAwait(Spinning spinning, CountDownLatch printed) {
    spinning.stop();
    try {
      boolean ended = printed.await(END_SECONDS, TimeUnit.SECONDS);
      if (!ended) {
        System.err.println("Spin: the GPU did not answer");
      }
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
    }
  }
}
