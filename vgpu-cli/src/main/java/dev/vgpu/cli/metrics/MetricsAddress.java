package dev.vgpu.cli.metrics;

import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.UnknownHostException;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

/** The address of the metrics: {@code PORT} on the loopback interface, or {@code HOST:PORT}. */
public final class MetricsAddress {
  private static final Pattern TEXT =
      Pattern.compile(
          "(?:(?:\\[(?<ipv6>[0-9A-Fa-f:.]+)\\]|(?<host>[^:\\[\\]]+)):)?(?<port>\\d{1,5})");

  private MetricsAddress() {}

  /**
   * {@return the address; on the loopback interface if no host is given}
   *
   * @param text for example {@code 9400}, {@code 0.0.0.0:9400} or {@code [::1]:9400}
   * @throws IllegalArgumentException if it is not an address; the message shows the syntax
   */
  public static InetSocketAddress fromString(String text) {
    Matcher matcher = TEXT.matcher(text.strip());
    int port = matcher.matches() ? Integer.parseInt(matcher.group("port")) : -1;
    if (port < 0 || port > 65_535) {
      throw new IllegalArgumentException(
          "'" + text + "' is no address: write PORT or HOST:PORT, for example 9400");
    }
    String host = matcher.group("ipv6") == null ? matcher.group("host") : matcher.group("ipv6");
    try {
      InetAddress address =
          host == null ? InetAddress.getLoopbackAddress() : InetAddress.getByName(host);
      return new InetSocketAddress(address, port);
    } catch (UnknownHostException e) {
      throw new IllegalArgumentException("no such host: '" + host + "' in '" + text + "'", e);
    }
  }
}
