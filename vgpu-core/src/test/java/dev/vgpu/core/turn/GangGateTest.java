package dev.vgpu.core.turn;

import static dev.vgpu.core.turn.GangNode.MS;
import static dev.vgpu.core.turn.GangNode.S;
import static dev.vgpu.core.turn.GangNode.US;
import static dev.vgpu.core.turn.GangNode.request;

import dev.vgpu.PreemptionClass;
import dev.vgpu.SharePolicy;
import dev.vgpu.core.turn.GangNode.Worker;
import java.util.List;
import org.junit.jupiter.api.Test;

class GangGateTest {
  private static final PreemptionClass NEAR = PreemptionClass.NEARLINE;

  private static void print(String name, GangNode node) {
    node.runUntil(10 * S);
    StringBuilder b = new StringBuilder(name);
    for (Worker w : node.workers) {
      b.append(" ")
          .append(w.id)
          .append(w.gpus)
          .append("=")
          .append(100.0 * w.usedNs() / node.nowNs)
          .append("% opened ")
          .append(w.opened);
    }
    System.out.println("PROBE " + b);
  }

  private static void add(
      GangNode node, List<Integer> gpus, long call, dev.vgpu.VirtualGpuRequest r) {
    Worker ignored = node.backlogged(gpus, call, r);
  }

  @Test
  void probe() {
    for (long call : new long[] {500 * US, 3 * MS}) {
      GangNode node = new GangNode(2);
      add(node, List.of(0, 1), call, request(SharePolicy.BEST_EFFORT, 0, NEAR));
      add(node, List.of(0), call, request(SharePolicy.BEST_EFFORT, 0, NEAR));
      add(node, List.of(1), call, request(SharePolicy.BEST_EFFORT, 0, NEAR));
      print("sym", node);
      node = new GangNode(2);
      add(node, List.of(0, 1), call, request(SharePolicy.BEST_EFFORT, 0, NEAR));
      for (int i = 0; i < 3; i++)
        add(node, List.of(1), call, request(SharePolicy.BEST_EFFORT, 0, NEAR));
      print("asym", node);
      node = new GangNode(2);
      add(node, List.of(0, 1), call, request(SharePolicy.BEST_EFFORT, 0, NEAR));
      add(node, List.of(0), call, request(SharePolicy.BEST_EFFORT, 0, NEAR));
      for (int i = 0; i < 3; i++)
        add(node, List.of(1), call, request(SharePolicy.BEST_EFFORT, 0, NEAR));
      print("asym2", node);
      node = new GangNode(3);
      add(node, List.of(0, 1), call, request(SharePolicy.BEST_EFFORT, 0, NEAR));
      add(node, List.of(1, 2), call, request(SharePolicy.BEST_EFFORT, 0, NEAR));
      add(node, List.of(0, 2), call, request(SharePolicy.BEST_EFFORT, 0, NEAR));
      print("ring", node);
      node = new GangNode(2);
      add(node, List.of(0, 1), call, request(SharePolicy.BURST_SHARE, 30, NEAR));
      add(node, List.of(0), call, request(SharePolicy.BEST_EFFORT, 0, NEAR));
      add(node, List.of(1), call, request(SharePolicy.BURST_SHARE, 70, NEAR));
      print("burst30", node);
      node = new GangNode(2);
      add(node, List.of(0, 1), call, request(SharePolicy.FIXED_SHARE, 30, NEAR));
      add(node, List.of(0), call, request(SharePolicy.FIXED_SHARE, 50, NEAR));
      add(node, List.of(1), call, request(SharePolicy.FIXED_SHARE, 70, NEAR));
      print("fixed30", node);
      node = new GangNode(4);
      add(node, List.of(0, 1, 2, 3), call, request(SharePolicy.BURST_SHARE, 50, NEAR));
      for (int i = 0; i < 4; i++)
        add(node, List.of(i), call, request(SharePolicy.BURST_SHARE, 20, NEAR));
      for (int i = 0; i < 4; i++)
        add(node, List.of(i), call, request(SharePolicy.BURST_SHARE, 30, NEAR));
      print("four", node);
    }
  }
}
