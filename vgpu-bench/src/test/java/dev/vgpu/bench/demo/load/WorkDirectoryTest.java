package dev.vgpu.bench.demo.load;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.vgpu.bench.demo.figure.DemoOptions;
import dev.vgpu.cli.console.UserException;
import java.nio.file.Path;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

class WorkDirectoryTest {
  @TempDir Path place;

  @Test
  void aDirectoryOfItsOwnIsDeletedAtTheEnd() throws Exception {
    try (WorkDirectory directory = WorkDirectory.create(DemoOptions.Logs.DELETE, place, 0)) {
      assertThat(directory.path()).isDirectory().hasParent(place);
    }
    assertThat(place).isEmptyDirectory();
  }

  @Test
  void aPlaceThatIsFullOrMissingIsToldWithTheWayOut() {
    assertThatThrownBy(() -> WorkDirectory.create(DemoOptions.Logs.DELETE, place, Long.MAX_VALUE))
        .isInstanceOf(UserException.class)
        .hasMessageContainingAll(place.toString(), "MiB are free", "-Djava.io.tmpdir=DIR");
    assertThat(place).isEmptyDirectory();
    assertThatThrownBy(
            () -> WorkDirectory.create(DemoOptions.Logs.DELETE, place.resolve("missing"), 0))
        .isInstanceOf(UserException.class)
        .hasMessageContaining("there is no such directory");
  }
}
