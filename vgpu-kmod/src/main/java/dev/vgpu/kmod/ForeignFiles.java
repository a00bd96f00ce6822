package dev.vgpu.kmod;

import static java.nio.charset.StandardCharsets.UTF_8;

import com.sun.jna.Function;
import com.sun.jna.LastErrorException;
import com.sun.jna.Library;
import com.sun.jna.NativeLibrary;
import dev.vgpu.files.JnaPlace;
import dev.vgpu.files.UntrustedFileException;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Map;
import java.util.Optional;

/**
 * Whether this process may take the open files of another process ({@code pidfd_getfd}). Through a
 * program's file, the driver carries out calls for that program. Immutable.
 */
class ForeignFiles {
  private static final int PIDFD_OPEN = 434;
  private static final int PIDFD_GETFD = 438;

  private static final int EPERM = 1;
  private static final int ESRCH = 3;
  private static final int EBADF = 9;
  private static final int ENOSYS = 38;

  private static final long CAP_SYS_PTRACE = 1L << 19;

  private final Path root;

  /**
   * @param root the file system's root, or a directory that replaces it
   */
  ForeignFiles(Path root) {
    this.root = root;
  }

  /**
   * Takes the first file of a process, and closes it again.
   *
   * @return the error's number; 0 if it worked
   */
  int attempt(long process) throws UntrustedFileException {
    JnaPlace.check(System.getenv());
    return Calls.attempt(process);
  }

  /**
   * {@return why this process may not take a process's open files, in words; empty if it may} The
   * kernel checks the permission before it looks for the file, so the process need not have any.
   */
  Optional<String> obstacle(long process) {
    int error;
    try {
      error = attempt(process);
    } catch (UntrustedFileException | LinkageError e) {
      return Optional.of("JNA cannot be used here: " + e.getMessage());
    }
    return switch (error) {
      case 0, EBADF -> Optional.empty();
      case ESRCH -> Optional.of("there is no such process: pid=" + process);
      case ENOSYS ->
          Optional.of(
              isFiltered()
                  ? "a seccomp filter hides it, or the kernel is older than Linux 5.6"
                  : "the kernel has no such call: it needs Linux 5.6");
      case EPERM -> Optional.of(refusal());
      default -> Optional.of("the kernel answers with error " + error);
    };
  }

  /**
   * {@return why this process may not take the open files of other users' processes, in words;
   * empty if nothing is known} A security module may still protect a process: {@link
   * #obstacle(long)}.
   */
  Optional<String> obstacle() {
    Optional<String> why = obstacle(ProcessHandle.current().pid());
    return why.isPresent() ? why : restriction();
  }

  private Optional<String> restriction() {
    String scope = text("proc/sys/kernel/yama/ptrace_scope");
    if (scope.equals("3")) {
      return Optional.of("Yama forbids it to every process: kernel.yama.ptrace_scope=3");
    }
    if ((Long.parseUnsignedLong(own("CapEff", "0"), 16) & CAP_SYS_PTRACE) != 0) {
      return Optional.empty();
    }
    return Optional.of(
        "this process lacks the capability CAP_SYS_PTRACE"
            + (scope.isEmpty() ? "" : ", with kernel.yama.ptrace_scope=" + scope));
  }

  private String refusal() {
    return restriction()
        .orElse(
            isFiltered()
                ? "a seccomp filter of this process refuses it"
                : "the kernel refuses it, for example because of a security module or a user"
                    + " namespace");
  }

  private boolean isFiltered() {
    return own("Seccomp", "0").equals("2");
  }

  private String own(String field, String otherwise) {
    return text("proc/self/status")
        .lines()
        .filter(line -> line.startsWith(field + ":"))
        .findFirst()
        .map(line -> line.substring(field.length() + 1).strip())
        .orElse(otherwise);
  }

  private String text(String file) {
    try {
      return Files.readString(root.resolve(file), UTF_8).strip();
    } catch (IOException e) {
      return "";
    }
  }

  /** Loading this class loads JNA. It registers nothing, and keeps no library open. */
  private static final class Calls {
    private static final Function SYSCALL = find("syscall");
    private static final Function CLOSE = find("close");

    private static Function find(String name) {
      try (NativeLibrary process =
          NativeLibrary.getInstance(
              (String) null, Map.of(Library.OPTION_STRING_ENCODING, "UTF-8"))) {
        return Function.getFunction(
            process.getGlobalVariableAddress(name), Function.THROW_LAST_ERROR);
      }
    }

    static int attempt(long process) {
      try {
        int descriptor = SYSCALL.invokeInt(new Object[] {PIDFD_OPEN, (int) process, 0});
        try {
          int taken = SYSCALL.invokeInt(new Object[] {PIDFD_GETFD, descriptor, 0, 0});
          CLOSE.invokeInt(new Object[] {taken});
        } finally {
          CLOSE.invokeInt(new Object[] {descriptor});
        }
        return 0;
      } catch (LastErrorException e) {
        return e.getErrorCode();
      }
    }
  }
}
