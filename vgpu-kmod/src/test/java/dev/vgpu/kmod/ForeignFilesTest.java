package dev.vgpu.kmod;

import static java.nio.charset.StandardCharsets.UTF_8;
import static org.assertj.core.api.Assertions.assertThat;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

class ForeignFilesTest {
  private static final long ROOT_CAPABILITIES = 0x1ffffffffffL;
  private static final long WITHOUT_PTRACE = ROOT_CAPABILITIES & ~(1L << 19);

  @TempDir Path root;

  private ForeignFiles answering(int error) {
    return new ForeignFiles(root) {
      @Override
      int attempt(long process) {
        return error;
      }
    };
  }

  private void put(String file, String text) throws IOException {
    Path path = root.resolve(file);
    Files.createDirectories(path.getParent());
    Files.writeString(path, text, UTF_8);
  }

  private void self(long capabilities, int seccomp) throws IOException {
    put(
        "proc/self/status",
        "Name:\tjava\nCapEff:\t"
            + Long.toHexString(capabilities)
            + "\nSeccomp:\t"
            + seccomp
            + "\n");
  }

  /** No kernel forbids a process its own files; a container's seccomp filter may. */
  @Test
  void takesAFileOfThisProcess() {
    ForeignFiles files = new ForeignFiles(Path.of("/"));
    assertThat(files.obstacle(ProcessHandle.current().pid()))
        .matches(
            why -> why.isEmpty() || why.get().contains("seccomp") || why.get().contains("5.6"));
  }

  @Test
  void namesTheKernelsOwnAnswer() throws Exception {
    Process ended = new ProcessBuilder("true").start();
    ended.waitFor();
    assertThat(new ForeignFiles(Path.of("/")).obstacle(ended.pid())).isPresent();
  }

  /** EBADF: the permission was there, and the process has no such file. */
  @ParameterizedTest
  @CsvSource({"0", "9"})
  void mayTakeFiles(int error) {
    assertThat(answering(error).obstacle(7)).isEmpty();
  }

  @Test
  void oldKernel() throws IOException {
    self(ROOT_CAPABILITIES, 0);
    assertThat(answering(38).obstacle(7))
        .contains("the kernel has no such call: it needs Linux 5.6");
    self(ROOT_CAPABILITIES, 2);
    assertThat(answering(38).obstacle(7).orElseThrow()).contains("a seccomp filter hides it");
  }

  @Test
  void refused() throws IOException {
    self(WITHOUT_PTRACE, 2);
    assertThat(answering(1).obstacle(7))
        .contains("this process lacks the capability CAP_SYS_PTRACE");
    put("proc/sys/kernel/yama/ptrace_scope", "1\n");
    assertThat(answering(1).obstacle(7).orElseThrow())
        .contains("CAP_SYS_PTRACE")
        .endsWith("kernel.yama.ptrace_scope=1");
    self(ROOT_CAPABILITIES, 2);
    assertThat(answering(1).obstacle(7)).contains("a seccomp filter of this process refuses it");
    self(ROOT_CAPABILITIES, 0);
    assertThat(answering(1).obstacle(7).orElseThrow()).startsWith("the kernel refuses it");
    put("proc/sys/kernel/yama/ptrace_scope", "3\n");
    assertThat(answering(1).obstacle(7).orElseThrow()).contains("ptrace_scope=3");
  }

  @Test
  void otherUsersProcesses() throws IOException {
    self(ROOT_CAPABILITIES, 0);
    assertThat(answering(0).obstacle()).isEmpty();
    assertThat(answering(38).obstacle().orElseThrow()).contains("Linux 5.6");
    self(WITHOUT_PTRACE, 0);
    assertThat(answering(0).obstacle().orElseThrow()).contains("CAP_SYS_PTRACE");
  }

  @Test
  void nativeCodeCannotBeLoaded() {
    ForeignFiles files =
        new ForeignFiles(root) {
          @Override
          int attempt(long process) {
            throw new UnsatisfiedLinkError("noexec");
          }
        };
    assertThat(files.obstacle(7)).contains("JNA cannot be used here: noexec");
  }

  @Test
  void otherAnswers() {
    assertThat(answering(3).obstacle(7)).contains("there is no such process: pid=7");
    assertThat(answering(24).obstacle(7)).contains("the kernel answers with error 24");
  }
}
