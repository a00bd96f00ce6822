package dev.vgpu.k8s.scheduler;

import static org.assertj.core.api.Assertions.assertThat;

import io.fabric8.kubernetes.api.model.Pod;
import io.fabric8.kubernetes.api.model.PodBuilder;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.Test;

class ShowCommandTest {
  @Test
  void tellsWhoHoldsWhatAndWhyOthersWait() {
    SmallCluster cluster = new SmallCluster(Pods.nodes(1, 1));
    cluster.create(Pods.share("runs", 30, Map.of("vgpu.dev/class", "online")));
    cluster.settle();
    Pod waits =
        new PodBuilder(Pods.whole("waits", 2, Map.of()))
            .editStatus()
            .addNewCondition()
            .withType("PodScheduled")
            .withMessage("0/1 nodes are available: 1 gang waits")
            .endCondition()
            .endStatus()
            .build();
    Pod wrong = Pods.share("wrong", 101, Map.of());
    Pod plain = Pods.pod("plain", Map.of(), Map.of("cpu", "1"));
    List<String> lines =
        ShowCommand.lines(List.of(waits, plain, wrong, cluster.pods.get("uid-runs")));
    assertThat(lines).hasSize(4);
    assertThat(lines.get(1)).contains("node-0", "default/runs", "30%", "online", "GPU-node-0-0");
    assertThat(lines.get(2)).contains("default/waits", "2xwhole", "1 gang waits");
    assertThat(lines.get(3)).contains("default/wrong", "refused", "asked 101");
  }
}
