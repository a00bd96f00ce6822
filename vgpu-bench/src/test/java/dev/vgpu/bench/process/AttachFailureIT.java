package dev.vgpu.bench.process;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.vgpu.bench.harness.Child;
import dev.vgpu.bench.harness.Node;
import dev.vgpu.bench.harness.PoolProcess;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.HashMap;
import java.util.Map;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;

/** If a program's hook cannot attach, its cuInit soon fails with the reason, without harm. */
class AttachFailureIT {
  private Node node;
  private PoolProcess pool;
  private Map<String, String> place;

  @BeforeEach
  void open() throws Exception {
    node = Node.open(Map.of());
    pool = node.openPool();
    place = Tenants.bestEffort(pool, "place");
  }

  @AfterEach
  void close() {
    System.err.print(node.errors());
    node.close();
  }

  private Map<String, String> with(String name, String value) {
    Map<String, String> changed = new HashMap<>(place);
    changed.put(name, value);
    return changed;
  }

  private void assertRefused(Map<String, String> where) throws Exception {
    Child program = node.start(where, "init");
    assertThat(program.line()).startsWith("error cuInit");
    assertThat(program.awaitEnd()).isEqualTo(1);
    assertThat(pool.processes()).isZero();
    assertThat(pool.memoryHeld()).isZero();
  }

  private void assertWorks(Map<String, String> where) throws Exception {
    Child program = node.start(where, "init");
    assertThat(program.answer().number("init_ns")).isPositive();
    assertThat(program.awaitEnd()).isZero();
  }

  @Test
  void driverThatIsNotThereIsToldByCuInit() throws Exception {
    assertRefused(with("VGPU_CUDA_DRIVER", "/nonexistent/libcuda.so.1"));
    assertWorks(place);
  }

  @Test
  void driverThatIsNoneIsToldByCuInit() throws Exception {
    Path text = Files.writeString(node.file("libcuda.so.1"), "not a library\n");
    assertRefused(with("VGPU_CUDA_DRIVER", text.toString()));
    assertRefused(with("VGPU_CUDA_DRIVER", node.runDirectory().toString()));
    assertWorks(place);
  }

  @Test
  void hookThatIsGivenAsTheDriverDoesNotCallItself() throws Exception {
    String hook = place.get("LD_PRELOAD").split("[: ]", 2)[0];
    assertRefused(with("VGPU_CUDA_DRIVER", hook));
  }

  @Test
  void leaseThatDoesNotExistIsRefusedUnlessOpenWasChosen() throws Exception {
    Map<String, String> wrong = with("VGPU_LEASE", "no-such-lease");
    assertRefused(wrong);
    wrong.put("VGPU_FAILURE_MODE", "open");
    assertWorks(wrong);
  }

  @Test
  void runDirectoryWithoutASeatIsRefusedUnlessOpenWasChosen() throws Exception {
    Map<String, String> wrong =
        with("VGPU_RUN_DIR", Files.createDirectory(node.file("empty")).toString());
    assertRefused(wrong);
    wrong.put("VGPU_FAILURE_MODE", "open");
    assertWorks(wrong);
  }

  @Test
  void poolWhoseRunDirectoryCannotBeMadeSaysSo() throws Exception {
    // Not even root can create a directory there.
    try (Node nowhere = Node.open(Map.of("VGPU_RUN_DIR", "/proc/vgpu"))) {
      assertThatThrownBy(nowhere::openPool)
          .isInstanceOf(IllegalStateException.class)
          .hasMessageContaining("the run directory cannot be used: path=/proc/vgpu");
    }
  }
}
