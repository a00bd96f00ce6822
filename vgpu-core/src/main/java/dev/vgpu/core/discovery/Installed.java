package dev.vgpu.core.discovery;

import java.util.ArrayList;
import java.util.List;
import java.util.ServiceLoader;
import java.util.function.Function;

/**
 * The installed implementations of an interface: those beside this class, and those that the
 * caller's thread sees besides. That thread may see another copy of vgpu, which is left alone.
 */
public final class Installed {
  private Installed() {}

  /**
   * {@return one of each class}
   *
   * @param loading {@code ServiceLoader.load} of the interface, which has to be called where the
   *     interface is known
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
