package dev.vgpu.spi;

import static org.assertj.core.api.Assertions.assertThat;
import static org.mockito.Mockito.mock;

import dev.vgpu.VirtualGpu;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import java.lang.reflect.Modifier;
import java.lang.reflect.Proxy;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.function.UnaryOperator;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.Test;

/** A subclass that overrides nothing behaves as what it forwards to. */
class ForwardingTest {
  private record Call(Method method, List<@Nullable Object> arguments) {}

  @Test
  void leasePassesEachCallOn() throws Exception {
    passesAllOn(EnforcedLease.class, beneath -> new ForwardingLease(beneath) {});
  }

  @Test
  void virtualGpuPassesEachCallOn() throws Exception {
    passesAllOn(VirtualGpu.class, beneath -> new ForwardingVirtualGpu(beneath) {});
  }

  @Test
  void textIsThatOfTheVirtualGpuBeneath() {
    VirtualGpu beneath = mock(VirtualGpu.class, "embed-1");
    assertThat(new ForwardingVirtualGpu(beneath) {}).hasToString("embed-1");
  }

  private static <T> void passesAllOn(Class<T> type, UnaryOperator<T> forwarding) throws Exception {
    for (Method method : type.getMethods()) {
      if (!Modifier.isStatic(method.getModifiers())) {
        for (Object answer : answers(method.getReturnType())) {
          passesOn(type, forwarding, method, answer);
        }
      }
    }
  }

  private static <T> void passesOn(
      Class<T> type, UnaryOperator<T> forwarding, Method method, Object answer) throws Exception {
    List<Call> calls = new ArrayList<>();
    Object beneath =
        Proxy.newProxyInstance(
            type.getClassLoader(),
            new Class<?>[] {type},
            (proxy, called, arguments) -> {
              calls.add(new Call(called, arguments == null ? List.of() : List.of(arguments)));
              return called.getReturnType() == void.class ? null : answer;
            });
    List<@Nullable Object> arguments = new ArrayList<>();
    for (Class<?> parameter : method.getParameterTypes()) {
      arguments.add(answers(parameter).get(0));
    }
    Object result = invoke(method, forwarding.apply(type.cast(beneath)), arguments.toArray());
    assertThat(calls).containsExactly(new Call(method, arguments));
    if (method.getReturnType() != void.class) {
      assertThat(result).isEqualTo(answer);
    }
  }

  private static @Nullable Object invoke(Method method, Object on, Object[] arguments)
      throws Exception {
    try {
      return method.invoke(on, arguments);
    } catch (InvocationTargetException e) {
      throw new AssertionError(method + " failed", e.getCause());
    }
  }

  /** Values of a type that no empty or default value equals; both of a boolean. */
  private static List<Object> answers(Class<?> type) {
    if (type == boolean.class) {
      return List.of(true, false);
    }
    if (type == int.class) {
      return List.of(7);
    }
    if (type == long.class) {
      return List.of(9L);
    }
    if (type == String.class) {
      return List.of("a text");
    }
    if (type == void.class || type == Object.class) {
      return List.of(new Object());
    }
    if (type == Optional.class) {
      return List.of(Optional.of(new Object()));
    }
    if (type == List.class) {
      return List.of(List.of(new Object()));
    }
    if (type == Map.class) {
      return List.of(Map.of("a name", new Object()));
    }
    return List.of(mock(type));
  }
}
