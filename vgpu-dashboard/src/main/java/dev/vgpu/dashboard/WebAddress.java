package dev.vgpu.dashboard;

import java.util.Locale;
import java.util.Optional;
import java.util.Set;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

/**
 * Where the dashboard listens. Immutable.
 *
 * @param host a name or a literal address, without brackets
 * @param port 0 to 65535; 0: any that is free
 */
public record WebAddress(String host, int port) {
  /** The default port. */
  public static final int DEFAULT_PORT = 8470;

  private static final String LOOPBACK = "127.0.0.1";
  private static final int MOST_PORT = 65_535;
  private static final Pattern NUMBER = Pattern.compile("\\d{1,5}");
  private static final Pattern PARTS =
      Pattern.compile("(\\[[0-9A-Fa-f:.]+]|[A-Za-z0-9][A-Za-z0-9.-]*)(?::(\\d{1,5}))?");
  private static final Pattern IPV4 = Pattern.compile("\\d{1,3}(\\.\\d{1,3}){3}");
  private static final Pattern IPV4_LOOPBACK = Pattern.compile("127(\\.\\d{1,3}){3}");
  private static final Set<String> LOOPBACKS = Set.of("localhost", "::1");

  /**
   * {@return the address given by a text: {@code HOST:PORT}, {@code HOST}, or {@code PORT} of the
   * loopback interface; an IPv6 address is in brackets}
   *
   * @param text the text; empty for the default port of the loopback interface
   * @throws IllegalArgumentException if it is not an address
   */
  public static WebAddress fromString(String text) {
    if (text.isEmpty()) {
      return new WebAddress(LOOPBACK, DEFAULT_PORT);
    }
    if (NUMBER.matcher(text).matches()) {
      return new WebAddress(LOOPBACK, port(text, text));
    }
    Matcher matcher = PARTS.matcher(text);
    if (!matcher.matches()) {
      throw wrong(text);
    }
    String port = matcher.group(2);
    return new WebAddress(bare(matcher.group(1)), port == null ? DEFAULT_PORT : port(port, text));
  }

  /**
   * {@return the address of a host and a port}
   *
   * @param host a name or a literal address; an IPv6 address may be in brackets
   * @param port 0 to 65535; 0: any that is free
   * @throws IllegalArgumentException if it is not an address
   */
  public static WebAddress of(String host, int port) {
    String name = bare(host);
    boolean isIpv6 = name.indexOf(':') != name.lastIndexOf(':');
    String text = isIpv6 ? "[" + name + "]" : name;
    Matcher matcher = PARTS.matcher(text);
    if (NUMBER.matcher(name).matches() || !matcher.matches() || matcher.group(2) != null) {
      throw new IllegalArgumentException("not a host: '" + host + "'");
    }
    if (port < 0 || port > MOST_PORT) {
      throw new IllegalArgumentException("a port is 0 to " + MOST_PORT + ": port=" + port);
    }
    return new WebAddress(name, port);
  }

  private static int port(String digits, String text) {
    int port = Integer.parseInt(digits);
    if (port > MOST_PORT) {
      throw wrong(text);
    }
    return port;
  }

  private static IllegalArgumentException wrong(String text) {
    return new IllegalArgumentException(
        "not an address: '" + text + "' (write for example 127.0.0.1:8470, 8470 or [::1]:8470)");
  }

  private static String bare(String host) {
    return host.startsWith("[") && host.endsWith("]") ? host.substring(1, host.length() - 1) : host;
  }

  /** {@return whether the address is reachable from this machine only} */
  public boolean isLoopback() {
    return isLoopback(host.toLowerCase(Locale.ROOT));
  }

  private static boolean isLoopback(String name) {
    return LOOPBACKS.contains(name) || IPV4_LOOPBACK.matcher(name).matches();
  }

  /** {@return the address as part of a URL, for example {@code [::1]:8470}} */
  public String inUrl() {
    return (host.contains(":") ? "[" + host + "]" : host) + ":" + port;
  }

  /**
   * Whether a request's {@code Host} is a name of this machine. A page elsewhere whose name was
   * made to resolve to this machine (DNS rebinding) still sends its own name. Ports are not
   * compared, because a tunnel changes them.
   *
   * @param header the request's, or empty
   * @param ownNames the names of this machine, in lower case
   */
  boolean isServed(Optional<String> header, Set<String> ownNames) {
    Matcher matcher = PARTS.matcher(header.orElse(""));
    if (!matcher.matches()) {
      return false;
    }
    String name = bare(matcher.group(1)).toLowerCase(Locale.ROOT);
    if (isLoopback(name)) {
      return true;
    }
    boolean isLiteral = IPV4.matcher(name).matches() || name.contains(":");
    return !isLoopback()
        && (isLiteral || name.equals(host.toLowerCase(Locale.ROOT)) || ownNames.contains(name));
  }
}
