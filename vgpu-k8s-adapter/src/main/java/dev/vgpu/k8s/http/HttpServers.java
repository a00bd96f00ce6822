package dev.vgpu.k8s.http;

import com.sun.net.httpserver.HttpServer;
import com.sun.net.httpserver.HttpsConfigurator;
import com.sun.net.httpserver.HttpsParameters;
import com.sun.net.httpserver.HttpsServer;
import java.io.IOException;
import java.net.InetSocketAddress;
import javax.net.ssl.SSLContext;
import javax.net.ssl.SSLParameters;

/**
 * Opens the HTTP servers of this process. All of them must come from here: the JDK reads its
 * settings once, when it opens the first.
 */
public final class HttpServers {
  /** How long a client may take to send a request, in seconds; then its connection is closed. */
  static final int READ_S = 5;

  static {
    // The JDK sends an answer's headers and its body separately. By default, the kernel holds the
    // body until the client has acknowledged the headers, which clients delay by about 40 ms
    // (JDK-6968351). kube-scheduler asks about one pod after the other, so each pod would wait.
    System.setProperty("sun.net.httpserver.nodelay", "true");
    // By default, a client that sends half a request keeps a thread forever.
    System.setProperty("sun.net.httpserver.maxReqTime", Integer.toString(READ_S));
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

  /**
   * {@return a server for HTTPS that is not started yet} It asks clients for a certificate, and
   * serves those without one too: a handler must look at the session.
   *
   * @param address where it listens; port 0 selects a free one
   * @param tls the server's certificate, and whose clients' certificates it trusts
   * @throws IOException if it cannot listen there
   */
  public static HttpServer open(InetSocketAddress address, SSLContext tls) throws IOException {
    HttpsServer server = HttpsServer.create(address, 0);
    server.setHttpsConfigurator(
        new HttpsConfigurator(tls) {
          @Override
          public void configure(HttpsParameters parameters) {
            SSLParameters wanted = getSSLContext().getDefaultSSLParameters();
            wanted.setWantClientAuth(true);
            parameters.setSSLParameters(wanted);
          }
        });
    return server;
  }
}
