package dev.vgpu.cuda;

import java.util.List;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.parallel.Isolated;

/** Runs all C tests of the hook over the stub driver, with no other test beside them. */
@Isolated("the hook tells short pauses from long ones by the clock")
class HookTest extends NativeTests {
  @Test
  @Timeout(value = 420, unit = TimeUnit.SECONDS)
  void hookKeepsItsPromises() throws Exception {
    runTests("plain", List.of());
  }
}
