package dev.vgpu.cuda.process;

import dev.vgpu.cuda.layout.HookEnvironment;
import java.util.List;
import java.util.Map;
import java.util.OptionalLong;
import java.util.stream.Stream;

/**
 * The programs that were started under a lease, attached or not. They are recognized by the lease's
 * variables, which their child processes inherit. Safe for use by several threads.
 */
public final class LeasePrograms {
  private final List<String> variables;
  private final ProcessLife life;
  private volatile long seen;

  /** Takes the variables that put a program under the lease. */
  public LeasePrograms(Map<String, String> environment, ProcessLife life) {
    this.variables =
        Stream.of(HookEnvironment.VGPU_LEASE, HookEnvironment.VGPU_RUN_DIR)
            .map(name -> name + "=" + environment.get(name))
            .toList();
    this.life = life;
  }

  /** {@return whether any such program is alive} Fast while the one found last time is alive. */
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
