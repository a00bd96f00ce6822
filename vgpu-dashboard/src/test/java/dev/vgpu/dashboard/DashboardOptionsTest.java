package dev.vgpu.dashboard;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.time.Duration;
import org.junit.jupiter.api.Test;

class DashboardOptionsTest {
  @Test
  void addressThatOthersReachNeedsAToken() {
    DashboardOptions.Builder open =
        DashboardOptions.builder().address(WebAddress.fromString("0.0.0.0:0"));

    assertThatThrownBy(open::build)
        .isInstanceOf(IllegalArgumentException.class)
        .hasMessageContaining("token")
        .hasMessageContaining("0.0.0.0:0");
    assertThat(open.token(Token.random()).build().token()).isPresent();
  }

  @Test
  void defaultsAreThoseOfTheCommand() {
    DashboardOptions options = DashboardOptions.builder().build();

    assertThat(options.address()).isEqualTo(WebAddress.fromString("127.0.0.1:8470"));
    assertThat(options.token()).isEmpty();
    assertThat(options.interval()).isEqualTo(Duration.ofSeconds(1));
    assertThat(options.mostViewers()).isEqualTo(32);
  }

  @Test
  void whatCannotBeServedIsRefused() {
    DashboardOptions.Builder builder = DashboardOptions.builder();

    assertThatThrownBy(() -> builder.interval(Duration.ZERO))
        .isInstanceOf(IllegalArgumentException.class);
    assertThatThrownBy(() -> builder.mostViewers(0)).isInstanceOf(IllegalArgumentException.class);
  }
}
