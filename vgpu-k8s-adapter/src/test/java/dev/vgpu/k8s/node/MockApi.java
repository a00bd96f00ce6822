package dev.vgpu.k8s.node;

import io.fabric8.kubernetes.client.KubernetesClient;
import io.fabric8.kubernetes.client.server.mock.KubernetesCrudDispatcher;
import io.fabric8.kubernetes.client.server.mock.KubernetesMockServer;
import io.fabric8.mockwebserver.Context;
import io.fabric8.mockwebserver.MockWebServer;
import java.util.HashMap;
import java.util.logging.Level;
import java.util.logging.Logger;

/** fabric8's mock API server, which stores what it is given. */
public final class MockApi implements AutoCloseable {
  /** Referenced, because loggers without a reference are collected, and lose their level. */
  private static final Logger LOGGER = Logger.getLogger("io.fabric8.mockwebserver");

  private final KubernetesMockServer server =
      new KubernetesMockServer(
          new Context(),
          new MockWebServer(),
          new HashMap<>(),
          new KubernetesCrudDispatcher(),
          false);

  /** Starts it. */
  public MockApi() {
    LOGGER.setLevel(Level.WARNING);
    server.init();
  }

  /** Creates a client, which the caller closes. */
  public KubernetesClient client() {
    return server.createClient();
  }

  String url() {
    return server.url("/");
  }

  @Override
  public void close() {
    server.destroy();
  }
}
