package dev.vgpu.cuda.process;

import dev.vgpu.cuda.layout.HookEnvironment;
import java.util.List;
import java.util.Map;
import java.util.OptionalLong;
import java.util.stream.Stream;

/**
 * The programs that were started under a lease, whether they have attached or not: they have its
 * variables, as what they start has. Safe for use by several threads.
 */
public final class LeasePrograms {
  private final List<String> variables;
  private final ProcessLife life;
  private volatile long seen;

  /** Makes it, of the variables that put a program under the lease. */
  public LeasePrograms(Map<String, String> environment, ProcessLife life) {
    this.variables =
        Stream.of(HookEnvironment.VGPU_LEASE, HookEnvironment.VGPU_RUN_DIR)
            .map(name -> name + "=" + environment.get(name))
            .toList();
    this.life = life;
  }

  /** {@return whether one lives} Quick while the one that was seen last does. */
  public boolean anyLives() {
    long last = seen;
    if (last != 0 && life.isStartedWith(last, variables)) {
      return true;
    }
    OptionalLong found = life.startedWith(variables);
    seen = found.orElse(0);
    return found.isPresent();
  }
}
