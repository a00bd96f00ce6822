package dev.vgpu.simulation;

import static dev.vgpu.request.PreemptionClass.NEARLINE;
import static dev.vgpu.request.PreemptionClass.OFFLINE;
import static dev.vgpu.request.PreemptionClass.ONLINE;
import static dev.vgpu.request.SharePolicy.BEST_EFFORT;
import static dev.vgpu.request.SharePolicy.BURST_SHARE;
import static dev.vgpu.request.SharePolicy.FIXED_SHARE;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.within;

import dev.vgpu.request.VirtualGpuRequest;
import java.util.ArrayList;
import java.util.List;
import org.junit.jupiter.api.Test;

class IdealDivisionTest {
  private final List<VirtualGpuRequest> requests = new ArrayList<>();

  private double[] divided(double floor, boolean... works) {
    double[] rates = new double[works.length];
    new IdealDivision(requests, floor).divide(works, rates);
    return rates;
  }

  private static void assertParts(double[] rates, double... expected) {
    assertThat(rates).containsExactly(expected, within(1e-9));
  }

  @Test
  void surplusIsSharedByThoseWhoTakeIt() {
    requests.add(VirtualNode.request(FIXED_SHARE, 20, NEARLINE));
    requests.add(VirtualNode.request(BURST_SHARE, 20, NEARLINE));
    requests.add(VirtualNode.request(BEST_EFFORT, 0, ONLINE));
    requests.add(VirtualNode.request(BEST_EFFORT, 0, OFFLINE));
    assertParts(divided(0, true, true, true, true), 0.2, 0.5, 0.3, 0);
    assertParts(divided(0, true, true, false, true), 0.2, 0.8, 0, 0);
    assertParts(divided(0.1, true, true, true, true), 0.2, 0.45, 0.25, 0.1);
    assertParts(divided(0.8, true, true, true, true), 0.1, 0.1, 0, 0.8);
    assertParts(divided(0, true, false, false, true), 0.2, 0, 0, 0.8);
    assertParts(divided(0, false, false, false, false), 0, 0, 0, 0);
  }

  @Test
  void offlineDividesWhatCapsLeaveAndNeverLessThanTheFloor() {
    requests.add(VirtualNode.request(FIXED_SHARE, 40, ONLINE));
    requests.add(VirtualNode.request(BURST_SHARE, 75, OFFLINE));
    requests.add(VirtualNode.request(FIXED_SHARE, 25, OFFLINE));
    assertParts(divided(0, true, true, true), 0.4, 0.45, 0.15);
    assertParts(divided(0.8, true, true, true), 0.2, 0.6, 0.2);
    assertParts(divided(0, false, false, true), 0, 0, 0.25);
    assertParts(divided(0, false, true, false), 0, 1, 0);
  }
}
