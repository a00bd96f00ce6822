package dev.vgpu.core.discovery;

import java.util.ArrayList;
import java.util.List;
import java.util.ServiceLoader;
import java.util.function.Function;

/**
 * Finds the installed implementations of a service. It searches the class loader of this class,
 * then the context class loader of the calling thread. If the context class loader sees another
 * copy of vgpu, it is not searched.
 */
public final class Installed {
  private Installed() {}

  /**
   * {@return one instance of each implementation class}
   *
   * @param loading {@code ServiceLoader.load} for the service; the module that declares {@code
   *     uses} must call it
   */
  public static <T> List<T> of(Class<T> service, Function<ClassLoader, ServiceLoader<T>> loading) {
    List<T> found = new ArrayList<>();
    ClassLoader own = Installed.class.getClassLoader();
    loading.apply(own).forEach(found::add);
    ClassLoader context = Thread.currentThread().getContextClassLoader();
    if (context != null && context != own && isSame(context, service)) {
      loading.apply(context).stream()
          .filter(each -> found.stream().noneMatch(other -> other.getClass() == each.type()))
          .forEach(each -> found.add(each.get()));
    }
    return found;
  }

  private static boolean isSame(ClassLoader context, Class<?> service) {
    try {
      return context.loadClass(service.getName()) == service;
    } catch (ClassNotFoundException e) {
      return false;
    }
  }
}
