package dev.vgpu.spring;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.vgpu.GpuPool;
import dev.vgpu.GpuPoolOptions;
import dev.vgpu.VirtualGpu;
import java.io.BufferedReader;
import java.io.InputStream;
import java.io.InputStreamReader;
import java.net.ConnectException;
import java.net.InetAddress;
import java.net.ServerSocket;
import java.net.Socket;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.nio.charset.StandardCharsets;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import org.junit.jupiter.api.Test;
import org.springframework.boot.autoconfigure.AutoConfigurations;
import org.springframework.boot.diagnostics.FailureAnalysis;
import org.springframework.boot.test.context.runner.ApplicationContextRunner;
import org.springframework.context.ApplicationContext;
import org.springframework.context.annotation.Bean;
import org.springframework.context.annotation.Configuration;

/** The dashboard of a pool in one JVM: served when asked for, to whom it should, until the end. */
class PoolDashboardTest {
  private static final String TOKEN = "a secret of this test";

  private final HttpClient client = HttpClient.newHttpClient();

  private static ApplicationContextRunner dashboard(String... properties) {
    return ModelsTest.service("vgpu.models.m.memory=1GiB")
        .withConfiguration(AutoConfigurations.of(VgpuDashboardAutoConfiguration.class))
        .withPropertyValues("vgpu.dashboard.enabled=true", "vgpu.dashboard.port=0")
        .withPropertyValues(properties);
  }

  private static int port(ApplicationContext context) {
    return context.getBean(GpuDashboard.class).address().port();
  }

  private static HttpRequest request(int port, String path, String... headers) {
    HttpRequest.Builder request =
        HttpRequest.newBuilder(URI.create("http://127.0.0.1:" + port + path));
    return headers.length == 0 ? request.build() : request.headers(headers).build();
  }

  private int status(int port, String path, String... headers) throws Exception {
    return client
        .send(request(port, path, headers), HttpResponse.BodyHandlers.discarding())
        .statusCode();
  }

  private void assertNothingListens(int port) {
    assertThatThrownBy(() -> status(port, "/")).isInstanceOf(ConnectException.class);
  }

  private static FailureAnalysis analysis(String... properties) {
    FailureAnalysis[] found = new FailureAnalysis[1];
    dashboard(properties)
        .run(
            context -> {
              assertThat(context).hasFailed();
              found[0] = new VgpuFailureAnalyzer().analyze(context.getStartupFailure());
            });
    assertThat(found[0]).as("an analysis of the failure").isNotNull();
    return found[0];
  }

  @Test
  void thereIsNoneUnlessAskedFor() {
    ModelsTest.service("vgpu.models.m.memory=1GiB")
        .withConfiguration(AutoConfigurations.of(VgpuDashboardAutoConfiguration.class))
        .run(context -> assertThat(context).doesNotHaveBean(GpuDashboard.class));
    dashboard("vgpu.dashboard.enabled=false")
        .run(context -> assertThat(context).doesNotHaveBean(GpuDashboard.class));
  }

  @Test
  void viewersSeeTheModelsUntilTheServiceEnds() {
    int[] port = new int[1];
    dashboard()
        .run(
            context -> {
              port[0] = port(context);
              assertThat(status(port[0], "/")).isEqualTo(200);
              assertThat(status(port[0], "/views.js")).isEqualTo(200);
              HttpResponse<InputStream> events =
                  client.send(
                      request(port[0], "/events"), HttpResponse.BodyHandlers.ofInputStream());
              try (BufferedReader lines =
                  new BufferedReader(
                      new InputStreamReader(events.body(), StandardCharsets.UTF_8))) {
                String line = lines.readLine();
                while (!line.startsWith("data: {\"look\":")) {
                  line = lines.readLine();
                }
                assertThat(line)
                    .contains("\"name\":\"m\"")
                    .contains("\"quota\":" + (1L << 30))
                    .contains("\"id\":\"" + TestDriver.GPU + "\"");
              }
            });

    assertNothingListens(port[0]);
  }

  /** The names of tenants are not for another site's page: a name that it made resolve to here. */
  @Test
  void anotherHostsNameIsRefused() {
    dashboard()
        .run(
            context -> {
              try (Socket socket =
                  new Socket(InetAddress.getLoopbackAddress(), port(context))) {
                socket
                    .getOutputStream()
                    .write(
                        "GET / HTTP/1.1\r\nHost: evil.example\r\n\r\n"
                            .getBytes(StandardCharsets.US_ASCII));
                assertThat(
                        new BufferedReader(
                                new InputStreamReader(
                                    socket.getInputStream(), StandardCharsets.US_ASCII))
                            .readLine())
                    .contains(" 421 ");
              }
            });
  }

  @Test
  void whereOthersReachItATokenIsNeeded() {
    FailureAnalysis none = analysis("vgpu.dashboard.address=0.0.0.0");
    assertThat(none.getDescription()).contains("0.0.0.0").contains("token");
    assertThat(none.getAction()).contains("vgpu.dashboard.token");
    FailureAnalysis few = analysis("vgpu.dashboard.address=0.0.0.0", "vgpu.dashboard.token=secret");
    assertThat(few.getDescription()).contains("16").doesNotContain("secret");
    assertThat(few.getAction()).contains("vgpu.dashboard.token");

    dashboard("vgpu.dashboard.address=0.0.0.0", "vgpu.dashboard.token=" + TOKEN)
        .run(
            context -> {
              int port = port(context);
              assertThat(status(port, "/events")).isEqualTo(401);
              assertThat(status(port, "/", "Authorization", "Bearer wrong")).isEqualTo(303);
              assertThat(status(port, "/", "Authorization", "Bearer " + TOKEN)).isEqualTo(200);
              assertThat(context.getBean(VgpuProperties.class).toString()).doesNotContain(TOKEN);
            });
  }

  @Test
  void anAddressThatIsNoneFailsTheStartInWords() {
    FailureAnalysis both = analysis("vgpu.dashboard.address=127.0.0.1:8470");
    assertThat(both.getDescription()).contains("'127.0.0.1:8470'");
    assertThat(both.getAction()).contains("vgpu.dashboard.address").contains("vgpu.dashboard.port");
    assertThat(analysis("vgpu.dashboard.port=70000").getDescription()).contains("70000");
  }

  @Test
  void aPortThatIsTakenFailsTheStartInWords() throws Exception {
    try (ServerSocket taken = new ServerSocket(0, 1, InetAddress.getLoopbackAddress())) {
      FailureAnalysis analysis = analysis("vgpu.dashboard.port=" + taken.getLocalPort());

      assertThat(analysis.getDescription())
          .contains("127.0.0.1:" + taken.getLocalPort())
          .doesNotContain("\n");
      assertThat(analysis.getAction()).contains("vgpu.dashboard.port");
    }
  }

  /** It still shows the call that the stop waits for, and ends before the pool is closed. */
  @Test
  void itIsServedUntilTheVirtualGpusAreReleased() throws Exception {
    CountDownLatch inside = new CountDownLatch(1);
    CountDownLatch leave = new CountDownLatch(1);
    AtomicInteger duringTheStop = new AtomicInteger();
    int[] port = new int[1];
    Thread[] ender = new Thread[1];
    dashboard()
        .run(
            context -> {
              VirtualGpu gpu = context.getBean(VirtualGpu.class);
              port[0] = port(context);
              Thread running =
                  new Thread(
                      () -> {
                        try {
                          gpu.call(
                              () -> {
                                inside.countDown();
                                return leave.await(1, TimeUnit.MINUTES);
                              });
                        } catch (Exception e) {
                          Thread.currentThread().interrupt();
                        }
                      });
              running.start();
              inside.await();
              ender[0] =
                  new Thread(
                      () -> {
                        while (!gpu.isClosed()) {
                          Thread.onSpinWait();
                        }
                        try {
                          duringTheStop.set(status(port[0], "/"));
                        } catch (Exception e) {
                          duringTheStop.set(-1);
                        } finally {
                          leave.countDown();
                        }
                      });
              ender[0].start();
            });
    ender[0].join();

    assertThat(duringTheStop.get()).isEqualTo(200);
    assertNothingListens(port[0]);
  }

  @Configuration(proxyBeanMethods = false)
  static class OwnPool {
    @Bean
    GpuPool ownPool() {
      return GpuPool.open(
          GpuPoolOptions.builder().scope(GpuPoolOptions.Scope.THIS_JVM).build());
    }
  }

  @Test
  void switchedOffAltogetherThereIsNoneEvenWithAPoolOfTheApplication() {
    dashboard("vgpu.enabled=false")
        .withUserConfiguration(OwnPool.class)
        .run(context -> assertThat(context).hasNotFailed().doesNotHaveBean(GpuDashboard.class));
  }

  @Test
  void editorsAreToldOfItsProperties() throws Exception {
    assertThat(ModelsTest.metadata())
        .contains("\"vgpu.dashboard.enabled\"")
        .contains("\"vgpu.dashboard.address\"")
        .contains("\"vgpu.dashboard.port\"")
        .contains("\"vgpu.dashboard.token\"");
  }
}
