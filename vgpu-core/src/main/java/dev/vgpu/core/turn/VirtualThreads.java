package dev.vgpu.core.turn;

import java.lang.invoke.MethodHandle;
import java.lang.invoke.MethodHandles;
import java.lang.invoke.MethodType;
import org.jspecify.annotations.Nullable;

/** Detects virtual threads, if the Java runtime has them (21 and later). */
final class VirtualThreads {
  private static final @Nullable MethodHandle IS_VIRTUAL = find();

  private VirtualThreads() {}

  private static @Nullable MethodHandle find() {
    try {
      return MethodHandles.publicLookup()
          .findVirtual(Thread.class, "isVirtual", MethodType.methodType(boolean.class));
    } catch (NoSuchMethodException | IllegalAccessException e) {
      return null;
    }
  }

  static boolean isVirtual(Thread thread) {
    MethodHandle isVirtual = IS_VIRTUAL;
    if (isVirtual == null) {
      return false;
    }
    try {
      return (boolean) isVirtual.invokeExact(thread);
    } catch (Throwable e) {
      throw new IllegalStateException("cannot tell whether a thread is virtual", e);
    }
  }
}
