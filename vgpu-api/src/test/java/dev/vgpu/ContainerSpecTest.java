package dev.vgpu;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatIllegalArgumentException;

import dev.vgpu.ContainerSpec.Access;
import dev.vgpu.ContainerSpec.Mount;
import java.nio.file.Path;
import java.util.Map;
import org.junit.jupiter.api.Test;

class ContainerSpecTest {
  private static final Path HOST = Path.of("/run/vgpu/leases/1");
  private static final Path INSIDE = Path.of("/run/vgpu");

  @Test
  void allIsThereInTheOrderInWhichItWasAdded() {
    Mount outer = new Mount(HOST, INSIDE, Access.READ_ONLY);
    Mount inner = new Mount(HOST.resolve("report"), INSIDE.resolve("report"), Access.READ_WRITE);
    ContainerSpec spec =
        ContainerSpec.builder()
            .variable("VGPU_LEASE", "1")
            .mount(outer)
            .mount(inner)
            .device(Path.of("/dev/nvidia0"))
            .build();
    assertThat(spec.environment()).containsExactlyEntriesOf(Map.of("VGPU_LEASE", "1"));
    assertThat(spec.mounts()).containsExactly(outer, inner);
    assertThat(spec.devices()).containsExactly(Path.of("/dev/nvidia0"));
    assertThat(spec).asString().contains("VGPU_LEASE=1", "report", "/dev/nvidia0");
  }

  @Test
  void aRelativePathIsRefused() {
    Path relative = Path.of("leases");
    assertThatIllegalArgumentException()
        .isThrownBy(() -> new Mount(relative, INSIDE, Access.READ_ONLY))
        .withMessageContaining("path=leases");
    assertThatIllegalArgumentException()
        .isThrownBy(() -> new Mount(HOST, relative, Access.READ_ONLY));
    assertThatIllegalArgumentException().isThrownBy(() -> ContainerSpec.builder().device(relative));
  }
}
