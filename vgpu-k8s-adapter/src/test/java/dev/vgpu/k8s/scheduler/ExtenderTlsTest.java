package dev.vgpu.k8s.scheduler;

import static java.nio.charset.StandardCharsets.US_ASCII;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.vgpu.fleet.placement.Policies;
import dev.vgpu.k8s.http.TlsFiles;
import dev.vgpu.k8s.scheduler.line.PodLine;
import dev.vgpu.k8s.time.NanoClock;
import io.fabric8.kubernetes.client.KubernetesClient;
import io.fabric8.kubernetes.client.KubernetesClientBuilder;
import java.io.IOException;
import java.io.InputStream;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.nio.file.Files;
import java.nio.file.Path;
import java.security.GeneralSecurityException;
import java.security.KeyStore;
import java.time.Duration;
import java.util.Base64;
import java.util.Map;
import java.util.Optional;
import javax.net.ssl.KeyManagerFactory;
import javax.net.ssl.SSLContext;
import javax.net.ssl.TrustManagerFactory;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** Who may ask the extender, if it has certificates. The JDK's keytool makes them. */
class ExtenderTlsTest {
  private static final char[] PASSWORD = "password".toCharArray();

  @TempDir static Path directory;
  private KubernetesClient client;
  private ExtenderServer server;

  @BeforeAll
  static void makeCertificates() throws Exception {
    for (String name : new String[] {"server", "client", "stranger"}) {
      make(name, name.equals("client") ? "EC" : "RSA");
    }
  }

  @BeforeEach
  void begin() throws Exception {
    client = new KubernetesClientBuilder().build();
    ExtenderService service =
        new ExtenderService(
            new PodLine(Policies.OURS),
            new Cluster(client, () -> false),
            Runnable::run,
            NanoClock.seconds(),
            Duration.ofSeconds(1),
            (pod, listed) -> Map.of(),
            (namespace, name, uid) -> Optional.empty());
    server =
        new ExtenderServer(
            new InetSocketAddress(InetAddress.getLoopbackAddress(), 0),
            Optional.of(new TlsFiles(pem("server"), key("server"), pem("client")).read()),
            service,
            () -> true);
  }

  @AfterEach
  void end() {
    server.close();
    client.close();
  }

  private static Path pem(String name) {
    return directory.resolve(name + ".crt");
  }

  private static Path key(String name) {
    return directory.resolve(name + ".key");
  }

  private static void make(String name, String algorithm) throws Exception {
    Path store = directory.resolve(name + ".p12");
    Process keytool =
        new ProcessBuilder(
                Path.of(System.getProperty("java.home"), "bin/keytool").toString(),
                "-J-XX:TieredStopAtLevel=1",
                "-J-XX:+UseSerialGC",
                "-genkeypair",
                "-alias",
                name,
                "-keyalg",
                algorithm,
                "-dname",
                "CN=" + name,
                "-ext",
                "san=ip:127.0.0.1",
                "-storetype",
                "PKCS12",
                "-keystore",
                store.toString(),
                "-storepass",
                new String(PASSWORD))
            .redirectErrorStream(true)
            .redirectOutput(ProcessBuilder.Redirect.DISCARD)
            .start();
    assertThat(keytool.waitFor()).isZero();
    KeyStore keys = keys(name);
    write(pem(name), "CERTIFICATE", keys.getCertificate(name).getEncoded());
    write(key(name), "PRIVATE KEY", keys.getKey(name, PASSWORD).getEncoded());
  }

  private static KeyStore keys(String name) throws IOException, GeneralSecurityException {
    KeyStore keys = KeyStore.getInstance("PKCS12");
    try (InputStream in = Files.newInputStream(directory.resolve(name + ".p12"))) {
      keys.load(in, PASSWORD);
    }
    return keys;
  }

  private static void write(Path file, String kind, byte[] content) throws IOException {
    String text = Base64.getMimeEncoder(64, new byte[] {'\n'}).encodeToString(content);
    Files.writeString(
        file, "-----BEGIN " + kind + "-----\n" + text + "\n-----END " + kind + "-----\n", US_ASCII);
  }

  private int status(Optional<String> as, String path) throws Exception {
    KeyManagerFactory own = KeyManagerFactory.getInstance(KeyManagerFactory.getDefaultAlgorithm());
    if (as.isPresent()) {
      own.init(keys(as.get()), PASSWORD);
    }
    KeyStore trusted = KeyStore.getInstance("PKCS12");
    trusted.load(null, null);
    trusted.setCertificateEntry("server", keys("server").getCertificate("server"));
    TrustManagerFactory trust =
        TrustManagerFactory.getInstance(TrustManagerFactory.getDefaultAlgorithm());
    trust.init(trusted);
    SSLContext tls = SSLContext.getInstance("TLS");
    tls.init(as.isPresent() ? own.getKeyManagers() : null, trust.getTrustManagers(), null);
    URI uri = URI.create("https://127.0.0.1:" + server.port() + path);
    return HttpClient.newBuilder()
        .sslContext(tls)
        .build()
        .send(
            HttpRequest.newBuilder(uri).POST(HttpRequest.BodyPublishers.ofString("{}")).build(),
            HttpResponse.BodyHandlers.ofString())
        .statusCode();
  }

  @Test
  void aClientWithTheCertificateIsAnswered() throws Exception {
    assertThat(status(Optional.of("client"), "/filter")).isEqualTo(200);
  }

  @Test
  void aClientWithoutOneMayOnlyAskWhetherItIsReady() throws Exception {
    assertThat(status(Optional.empty(), "/filter")).isEqualTo(403);
    assertThat(status(Optional.empty(), "/bind")).isEqualTo(403);
    assertThat(status(Optional.empty(), "/readyz")).isEqualTo(200);
  }

  /** A client leaves a certificate out that the server does not ask for; the server trusts none. */
  @Test
  void aClientOfAnotherAuthorityIsNotAnswered() throws Exception {
    assertThat(status(Optional.of("stranger"), "/filter")).isEqualTo(403);
  }

  @Test
  void aFileThatIsMissingIsNamed() throws IOException {
    Path none = directory.resolve("none.crt");
    assertThatThrownBy(() -> new TlsFiles(none, key("server"), pem("client")).read())
        .isInstanceOf(IOException.class)
        .hasMessageContaining("none.crt");
    Path empty = Files.createFile(directory.resolve("empty.crt"));
    assertThatThrownBy(() -> new TlsFiles(pem("server"), key("server"), empty).read())
        .isInstanceOf(IOException.class)
        .hasMessageContaining("empty.crt");
  }
}
