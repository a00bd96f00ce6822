package dev.vgpu.testing;

import net.jqwik.api.ShrinkingMode;
import net.jqwik.api.lifecycle.AroundPropertyHook;
import net.jqwik.api.lifecycle.PropagationMode;
import net.jqwik.api.lifecycle.PropertyAttributes;
import net.jqwik.api.lifecycle.PropertyExecutionResult;
import net.jqwik.api.lifecycle.PropertyExecutor;
import net.jqwik.api.lifecycle.PropertyLifecycleContext;

/**
 * Gives every property the seed of the run, and {@code vgpu.tries} times as many tries. Where
 * {@code vgpu.mostTries} is set, a property has at most so many tries, and the sample that fails is
 * not shrunk. Registered as a service, so jqwik finds it.
 */
public final class PropertyHook implements AroundPropertyHook {
  private static final int TIMES = Integer.getInteger("vgpu.tries", 1);
  private static final int MOST = Integer.getInteger("vgpu.mostTries", Integer.MAX_VALUE);
  private static final int DEFAULT_TRIES = 1000;

  @Override
  public PropagationMode propagateTo() {
    return PropagationMode.ALL_DESCENDANTS;
  }

  @Override
  public PropertyExecutionResult aroundProperty(
      PropertyLifecycleContext context, PropertyExecutor property) {
    PropertyAttributes attributes = context.attributes();
    if (attributes.seed().isEmpty()) {
      attributes.setSeed(Long.toString(TestSeed.seed()));
    }
    int tries = attributes.tries().orElse(DEFAULT_TRIES);
    attributes.setTries(tries == 1 ? 1 : Math.min(MOST, Math.multiplyExact(tries, TIMES)));
    if (MOST < Integer.MAX_VALUE) {
      attributes.setShrinking(ShrinkingMode.OFF);
    }
    return property.execute();
  }
}
