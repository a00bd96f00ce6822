package dev.vgpu.cuda;

import static dev.vgpu.cuda.layout.ShmLayout.NO_SLOT;
import static dev.vgpu.cuda.layout.ShmLayout.STATUS_FULL;
import static dev.vgpu.cuda.layout.ShmLayout.STATUS_OK;
import static org.assertj.core.api.Assertions.assertThat;

import dev.vgpu.cuda.hook.HookMessage;
import dev.vgpu.request.MemorySize;
import dev.vgpu.request.VirtualGpuRequest;
import dev.vgpu.spi.EnforcedLease;
import dev.vgpu.spi.Enforcement;
import java.io.BufferedReader;
import java.io.IOException;
import java.net.StandardProtocolFamily;
import java.net.UnixDomainSocketAddress;
import java.nio.channels.SocketChannel;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;

/** Programs that connect to a host with a low limit of open files. */
@Timeout(120)
class DescriptorsTest {
  private static final int LIMIT = 256;

  /** Not visible in this process's /proc, like the processes of a container. */
  private static final long OTHER_NAMESPACE = 1;

  /** A host that embeds the seat. */
  static final class Host {
    private Host() {}

    /**
     * Opens a seat with two leases. For each byte of input, prints how many files it can open.
     *
     * @param arguments the run directory
     * @throws IOException if opening the seat fails
     */
    public static void main(String[] arguments) throws IOException {
      Path run = Path.of(arguments[0]);
      Map<String, String> environment =
          Map.of("VGPU_HOOK", run.resolve("hook.so").toString(), "VGPU_CONTEXT_MEMORY", "65536");
      try (Enforcement seat = new CudaHookBackend(environment).open(run)) {
        for (String id : List.of("hog", "other")) {
          Path directory = Files.createDirectories(run.resolve("leases").resolve(id));
          VirtualGpuRequest request =
              VirtualGpuRequest.builder().memory(MemorySize.ofMebibytes(64)).build();
          EnforcedLease ignored =
              seat.prepare(id, directory, TestGpu.named("GPU-1"), request, new SilentListener());
        }
        System.out.println(opens()); // loads the classes that this needs
        while (System.in.read() >= 0) {
          System.out.println(opens());
        }
      }
    }

    private static int opens() throws IOException {
      List<SocketChannel> opened = new ArrayList<>();
      try {
        while (opened.size() < 2 * LIMIT) {
          opened.add(SocketChannel.open(StandardProtocolFamily.UNIX));
        }
      } catch (IOException e) {
        assertThat(e).hasMessageContaining("open files");
      }
      for (SocketChannel each : opened) {
        each.close();
      }
      return opened.size();
    }
  }

  @TempDir private Path run;
  private final List<AutoCloseable> toClose = new ArrayList<>();
  private Process host;
  private BufferedReader said;

  @BeforeEach
  void startHost() throws IOException {
    Files.createFile(run.resolve("hook.so"));
    host =
        new ProcessBuilder(
                "sh",
                "-c",
                "ulimit -n " + LIMIT + "; exec \"$@\"",
                "sh",
                Path.of(System.getProperty("java.home"), "bin", "java").toString(),
                "-XX:+UseSerialGC",
                "-cp",
                System.getProperty("java.class.path"),
                Host.class.getName(),
                run.toString())
            .redirectError(ProcessBuilder.Redirect.INHERIT)
            .start();
    said = host.inputReader();
  }

  @AfterEach
  void closeAll() throws Exception {
    for (AutoCloseable each : toClose) {
      each.close();
    }
    host.destroyForcibly().waitFor();
  }

  private int canOpen() throws IOException {
    host.getOutputStream().write('\n');
    host.getOutputStream().flush();
    return Integer.parseInt(said.readLine());
  }

  private int attach(String lease, int programs) throws IOException {
    for (int i = 0; i < programs; i++) {
      FakeHook hook = new FakeHook(run, lease, 1_000 + i, OTHER_NAMESPACE);
      toClose.add(hook);
      HookMessage answer = hook.hello(NO_SLOT);
      if (answer.status() != STATUS_OK) {
        assertThat(answer.status()).isEqualTo(STATUS_FULL);
        assertThat(answer.text()).contains("open files", "ulimit -n");
        return i;
      }
    }
    return programs;
  }

  @Test
  void connectionsLeaveTheHostFilesOfItsOwnAndOtherLeasesAPart() throws Exception {
    int before = Integer.parseInt(said.readLine());
    int ofHog = attach("hog", 120);
    for (int i = 0; i < LIMIT; i++) {
      SocketChannel stranger =
          SocketChannel.open(UnixDomainSocketAddress.of(run.resolve("hook.sock")));
      toClose.add(stranger);
    }
    int left = canOpen();
    System.out.println(
        "a host with "
            + LIMIT
            + " files at most: hog="
            + ofHog
            + " before="
            + before
            + " left="
            + left);
    assertThat(ofHog).isBetween(8, LIMIT / 8);
    assertThat(before - left).isLessThanOrEqualTo(LIMIT / 4);
    assertThat(attach("other", 8)).isEqualTo(8);
  }
}
