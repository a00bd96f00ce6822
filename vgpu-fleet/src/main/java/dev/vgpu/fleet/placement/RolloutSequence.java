package dev.vgpu.fleet.placement;

import dev.vgpu.fleet.model.NodeKind;
import dev.vgpu.fleet.model.NodeState;
import dev.vgpu.fleet.model.Shape;
import java.util.Arrays;

/** A sequence of requests for one kind of node. Each is placed on the tightest GPU. */
final class RolloutSequence {
  private static final int WHOLE = 100;

  private final int[] cpu;
  private final int[] host;
  private final int[] need;
  private final int[] gpus;

  /** By position: the smallest share that this or any later request needs. */
  private final int[] leastNeed;

  RolloutSequence(NodeKind kind, Shape[] drawn) {
    Shape[] shapes =
        Arrays.stream(drawn)
            .filter(shape -> shape.gpus() == 0 || (shape.takes(kind.model()) && !shape.isMig()))
            .toArray(Shape[]::new);
    int length = shapes.length;
    cpu = Arrays.stream(shapes).mapToInt(Shape::cpuMillis).toArray();
    host = Arrays.stream(shapes).mapToInt(Shape::hostMebibytes).toArray();
    gpus = Arrays.stream(shapes).mapToInt(Shape::gpus).toArray();
    need = new int[length];
    leastNeed = new int[length + 1];
    leastNeed[length] = WHOLE + 1;
    for (int i = length - 1; i >= 0; i--) {
      need[i] = gpus[i] == 0 ? 0 : Fragmentation.need(kind, shapes[i]);
      leastNeed[i] = gpus[i] == 0 ? leastNeed[i + 1] : Math.min(need[i], leastNeed[i + 1]);
    }
  }

  /**
   * {@return the share that stays free, in percent of one GPU}
   *
   * @param state the node before
   * @param free working space for the node's GPUs
   */
  int fill(NodeState state, int[] free) {
    int count = state.gpus();
    for (int slot = 0; slot < count; slot++) {
      free[slot] = state.freePercent(slot);
    }
    int cpuLeft = state.cpuMillis();
    int hostLeft = state.hostMebibytes();
    int idle = state.idlePercent();
    int most = free[count - 1];
    for (int i = 0; i < cpu.length && most >= leastNeed[i]; i++) {
      if (need[i] > most || cpu[i] > cpuLeft || host[i] > hostLeft) {
        continue;
      }
      if (gpus[i] == 1) {
        int slot = tightest(free, count, need[i]);
        boolean isMost = free[slot] == most;
        free[slot] -= need[i];
        most = isMost ? most(free, count) : most;
      } else if (gpus[i] > 1) {
        if (!takeSeveral(free, count, gpus[i], need[i])) {
          continue;
        }
        most = most(free, count);
      }
      cpuLeft -= cpu[i];
      hostLeft -= host[i];
      idle -= need[i] * gpus[i];
    }
    return idle;
  }

  private static int most(int[] free, int count) {
    int most = 0;
    for (int slot = 0; slot < count; slot++) {
      most = Math.max(most, free[slot]);
    }
    return most;
  }

  /** {@return the GPU with the least room among those with enough; there is one} */
  private static int tightest(int[] free, int count, int need) {
    int best = -1;
    int least = Integer.MAX_VALUE;
    for (int slot = 0; slot < count; slot++) {
      if (free[slot] >= need && free[slot] < least) {
        least = free[slot];
        best = slot;
      }
    }
    return best;
  }

  private static boolean takeSeveral(int[] free, int count, int gpus, int need) {
    int room = 0;
    for (int slot = 0; slot < count; slot++) {
      room += free[slot] >= need ? 1 : 0;
    }
    int left = room < gpus ? 0 : gpus;
    for (int slot = 0; slot < count && left > 0; slot++) {
      if (free[slot] >= need) {
        free[slot] -= need;
        left--;
      }
    }
    return room >= gpus;
  }
}
