package dev.vgpu.dashboard;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.util.Optional;
import java.util.Set;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;

class WebAddressTest {
  @ParameterizedTest
  @CsvSource({
    "'', 127.0.0.1:8470, true",
    "9000, 127.0.0.1:9000, true",
    "localhost, localhost:8470, true",
    "[::1]:80, [::1]:80, true",
    "127.0.0.9:1, 127.0.0.9:1, true",
    "0.0.0.0:8470, 0.0.0.0:8470, false",
    "gpu-1.example.org:0, gpu-1.example.org:0, false",
  })
  void readsWhatANodesOwnerWrites(String text, String url, boolean isLoopback) {
    WebAddress address = WebAddress.fromString(text);
    assertThat(address.inUrl()).isEqualTo(url);
    assertThat(address.isLoopback()).isEqualTo(isLoopback);
  }

  @ParameterizedTest
  @ValueSource(strings = {"65536", "host:70000", "http://host", "a b", "::1", "host:", ":80", "-h"})
  void refusesWhatIsNone(String text) {
    assertThatThrownBy(() -> WebAddress.fromString(text))
        .isInstanceOf(IllegalArgumentException.class)
        .hasMessageContaining("'" + text + "'")
        .hasMessageContaining("127.0.0.1:8470");
  }

  @ParameterizedTest
  @CsvSource({"node7, 80, node7:80", "::1, 0, [::1]:0", "[::1], 65535, [::1]:65535"})
  void readsAHostAndAPort(String host, int port, String url) {
    assertThat(WebAddress.of(host, port).inUrl()).isEqualTo(url);
  }

  @ParameterizedTest
  @CsvSource({
    "'', 80",
    "'a b', 80",
    "127.0.0.1:8470, 80",
    "[::1]:1, 80",
    "[::1, 80",
    "8470, 80",
    "http://host, 80",
    "host, -1",
    "host, 65536"
  })
  void refusesAHostOrAPortThatIsNone(String host, int port) {
    assertThatThrownBy(() -> WebAddress.of(host, port))
        .isInstanceOf(IllegalArgumentException.class)
        .hasMessageContaining(port == 80 ? "'" + host + "'" : "port=" + port);
  }

  @ParameterizedTest
  @CsvSource({
    "8470, localhost:8470, true",
    "8470, 127.0.0.1, true",
    "8470, '[::1]:99', true",
    "8470, evil.example:8470, false",
    "8470, 127.0.0.1.evil.example, false",
    "8470, 10.0.0.1, false",
    "8470, node7, false",
    "8470, '', false",
    "0.0.0.0, 10.0.0.1:8470, true",
    "0.0.0.0, NODE7:8470, true",
    "0.0.0.0, evil.example, false",
    "gpu.example.org, GPU.example.org:8470, true",
  })
  void answersUnderItsOwnNamesOnly(String address, String host, boolean isServed) {
    assertThat(WebAddress.fromString(address).isServed(Optional.of(host), Set.of("node7")))
        .isEqualTo(isServed);
  }
}
