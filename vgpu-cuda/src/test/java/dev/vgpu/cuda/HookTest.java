package dev.vgpu.cuda;

import java.util.List;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.parallel.Isolated;

/**
 * Runs all C tests of the hook over the stub driver, with none but each other beside them: they
 * mostly wait.
 */
@Isolated("the hook tells short pauses from long ones by the clock")
class HookTest extends NativeTests {
  private static final int LANES = 3;

  @Override
  int lanes() {
    return LANES;
  }

  @Test
  @Timeout(value = 420, unit = TimeUnit.SECONDS)
  void hookKeepsItsPromises() throws Exception {
    runTests("plain", List.of());
  }
}
