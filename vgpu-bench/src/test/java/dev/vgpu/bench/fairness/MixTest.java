package dev.vgpu.bench.fairness;

import static org.assertj.core.api.Assertions.assertThat;

import dev.vgpu.request.SharePolicy;
import java.util.List;
import org.assertj.core.data.Offset;
import org.junit.jupiter.api.Test;

final class MixTest {
  @Test
  void surplusIsDividedEquallyAmongThoseWhoMayTakeIt() {
    Mix mix =
        new Mix(
            "three",
            List.of(
                new Mix.Tenant(SharePolicy.FIXED_SHARE, 50),
                new Mix.Tenant(SharePolicy.BURST_SHARE, 30),
                new Mix.Tenant(SharePolicy.BEST_EFFORT, 0)));
    assertThat(mix.entitledPercent(0)).isEqualTo(50);
    assertThat(mix.entitledPercent(1)).isEqualTo(40);
    assertThat(mix.entitledPercent(2)).isEqualTo(10);
  }

  @Test
  void mixesOf2To16TenantsAreEntitledToTheWholeGpu() {
    for (Mix mix : Mix.all()) {
      double sum = 0;
      for (int i = 0; i < mix.tenants().size(); i++) {
        sum += mix.entitledPercent(i);
      }
      assertThat(sum).as(mix.name()).isCloseTo(100, Offset.offset(1e-9));
    }
    assertThat(Mix.all().stream().mapToInt(mix -> mix.tenants().size()))
        .contains(2, 16)
        .allMatch(size -> size >= 2 && size <= 16);
  }
}
