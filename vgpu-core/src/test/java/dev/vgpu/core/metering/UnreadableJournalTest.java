package dev.vgpu.core.metering;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.vgpu.VgpuException;
import dev.vgpu.core.metering.MeteredNode.Tenant;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import org.junit.jupiter.api.Test;

/** The records are there, but cannot be read. */
class UnreadableJournalTest {
  @Test
  void aQuestionFailsInsteadOfTellingAPartOfTheUse() throws Exception {
    try (MeteredNode node = new MeteredNode(UsageJournal.Limits.USUAL)) {
      Tenant tenant = node.acquire("model-1", "GPU-1");
      tenant.gpuNs = MeteredNode.SECOND_NS / 2;
      node.second();
      Path usage = node.directory.resolve("usage");
      Path away = Files.move(usage, node.directory.resolve("away"));
      Files.createSymbolicLink(usage, usage);
      assertThatThrownBy(node::all)
          .isInstanceOf(VgpuException.class)
          .hasMessageContaining("usage cannot be read: path=" + usage);
      assertThat(node.failures).hasSize(1);
      Files.delete(usage);
      Files.move(away, usage);
      assertThat(node.of(tenant).gpuTime()).isEqualTo(Duration.ofMillis(500));
    }
  }
}
