package dev.vgpu.k8s.http;

import com.sun.net.httpserver.HttpServer;
import java.io.IOException;
import java.net.InetSocketAddress;

/**
 * Opens the HTTP servers of this process. All of them must come from here: the JDK reads its
 * setting once, when it opens the first.
 */
public final class HttpServers {
  static {
    // The JDK sends an answer's headers and its body separately. By default, the kernel holds the
    // body until the client has acknowledged the headers, which clients delay by about 40 ms
    // (JDK-6968351). kube-scheduler asks about one pod after the other, so each pod would wait.
    System.setProperty("sun.net.httpserver.nodelay", "true");
  }

  private HttpServers() {}

  /**
   * {@return a server that is not started yet}
   *
   * @param address where it listens; port 0 selects a free one
   * @throws IOException if it cannot listen there
   */
  public static HttpServer open(InetSocketAddress address) throws IOException {
    return HttpServer.create(address, 0);
  }
}
