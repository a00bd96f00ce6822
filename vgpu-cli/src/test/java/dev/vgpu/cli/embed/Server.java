package dev.vgpu.cli.embed;

import dev.vgpu.cli.time.NanoClock;
import java.lang.ref.WeakReference;
import java.net.MalformedURLException;
import java.net.URL;
import java.net.URLClassLoader;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.concurrent.Callable;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.ThreadPoolExecutor;
import java.util.concurrent.TimeUnit;
import java.util.stream.Collectors;

/**
 * A server that loads applications and drops them again, each with a copy of vgpu in its own class
 * loader. Its threads outlive them. Prints what remains of them.
 */
public final class Server {
  /** JNA's thread in a copy ends 30 s after the last thing that it cleaned, which may be late. */
  private static final long PATIENCE_NS = 150_000_000_000L;

  private static final NanoClock CLOCK = NanoClock.system();

  private final ThreadPoolExecutor threads =
      new ThreadPoolExecutor(3, 3, 1, TimeUnit.SECONDS, new LinkedBlockingQueue<>());
  private final List<WeakReference<ClassLoader>> dropped = new ArrayList<>();

  /** The JDK keeps the types of the last linked record alive: linking this one replaces them. */
  private record Last(Object first, String second) {}

  private Server() {}

  /** Arguments: the application's class, how often to load it, and how many copies at once. */
  public static void main(String[] arguments) throws Exception {
    Server server = new Server();
    // A thread keeps the classes of its creator's code alive: it must not be an application.
    server.threads.prestartAllCoreThreads();
    int times = Integer.parseInt(arguments[1]);
    int beside = Integer.parseInt(arguments[2]);
    for (int i = 0; i < times; i += beside) {
      server.deploy(arguments[0], beside);
    }
    System.out.println("left " + server.left());
    server.threads.shutdown();
  }

  private void deploy(String application, int beside) throws Exception {
    List<URLClassLoader> loaders = new ArrayList<>();
    List<Callable<?>> running = new ArrayList<>();
    for (int i = 0; i < beside; i++) {
      URLClassLoader loader = new URLClassLoader(classPath(), ClassLoader.getPlatformClassLoader());
      loaders.add(loader);
      running.add(start(application, loader));
      dropped.add(new WeakReference<>(loader));
    }
    for (int i = 0; i < beside; i++) {
      System.out.println(running.get(i).call());
      loaders.get(i).close();
    }
    long beginNs = CLOCK.nowNs();
    while (!guests().isEmpty() && CLOCK.nowNs() - beginNs < PATIENCE_NS) {
      CLOCK.sleepUntil(CLOCK.nowNs() + 1_000_000);
    }
    System.out.println("threads " + guests());
  }

  /** {@return a callable that ends the application} */
  private Callable<?> start(String application, ClassLoader loader) throws Exception {
    Thread thread = Thread.currentThread();
    ClassLoader own = thread.getContextClassLoader();
    thread.setContextClassLoader(loader);
    try {
      Callable<?> started =
          (Callable<?>)
              loader
                  .loadClass(application)
                  .getConstructor(ExecutorService.class)
                  .newInstance(threads);
      return started;
    } finally {
      thread.setContextClassLoader(own);
    }
  }

  private static URL[] classPath() {
    return Arrays.stream(System.getProperty("java.class.path", "").split(":", -1))
        .map(Server::url)
        .toArray(URL[]::new);
  }

  private static URL url(String path) {
    try {
      return Path.of(path).toUri().toURL();
    } catch (MalformedURLException e) {
      throw new IllegalArgumentException(path, e);
    }
  }

  /** The threads that vgpu has left running. */
  private static String guests() {
    return Thread.getAllStackTraces().keySet().stream()
        .map(Thread::getName)
        .filter(name -> name.startsWith("vgpu-"))
        .sorted()
        .collect(Collectors.joining(","));
  }

  /** How many class loaders have not been collected. */
  private long left() throws InterruptedException {
    long beginNs = CLOCK.nowNs();
    Last last = new Last(this, "");
    boolean ignored =
        last.equals(new Last(this, "")) && (last.hashCode() + last.toString()).isEmpty();
    long left;
    do {
      System.gc(); // takes 0.1 s of a processor, and JNA's threads wait for 30 s
      CLOCK.sleepUntil(CLOCK.nowNs() + 500_000_000);
      left = dropped.stream().filter(each -> each.get() != null).count();
    } while (left > 0 && CLOCK.nowNs() - beginNs < PATIENCE_NS);
    return left;
  }
}
