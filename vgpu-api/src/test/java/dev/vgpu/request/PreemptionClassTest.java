package dev.vgpu.request;

import static dev.vgpu.request.PreemptionClass.NEARLINE;
import static dev.vgpu.request.PreemptionClass.OFFLINE;
import static dev.vgpu.request.PreemptionClass.ONLINE;
import static org.assertj.core.api.Assertions.assertThat;

import org.junit.jupiter.api.Test;

class PreemptionClassTest {
  @Test
  void onlineIsMoreUrgentThanNearlineAndThatThanOffline() {
    assertThat(ONLINE.isMoreUrgentThan(NEARLINE)).isTrue();
    assertThat(NEARLINE.isMoreUrgentThan(OFFLINE)).isTrue();
    assertThat(ONLINE.isMoreUrgentThan(OFFLINE)).isTrue();
    assertThat(OFFLINE.isMoreUrgentThan(NEARLINE)).isFalse();
    assertThat(NEARLINE.isMoreUrgentThan(ONLINE)).isFalse();
  }

  @Test
  void noClassIsMoreUrgentThanItself() {
    assertThat(PreemptionClass.values()).noneMatch(each -> each.isMoreUrgentThan(each));
  }
}
