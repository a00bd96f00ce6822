package dev.vgpu.cli.report;

import static java.nio.charset.StandardCharsets.UTF_8;

import dev.vgpu.cli.console.UserException;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardCopyOption;
import org.jspecify.annotations.Nullable;

/**
 * A file that is written atomically: it is written to a temporary file, then moved into place.
 * Until then any older file stays. Confined to one thread.
 */
public final class ReportFile {
  private final Path path;

  private ReportFile(Path path) {
    this.path = path;
  }

  /**
   * Checks that a file can be written, without writing it. Creates its directory.
   *
   * @param path where the file goes; an existing file will be replaced
   * @return the file
   * @throws UserException if it cannot be written; the message says why
   */
  public static ReportFile prepare(Path path) throws UserException {
    Path target = path.toAbsolutePath().normalize();
    try {
      if (Files.exists(target)) {
        target = target.toRealPath();
      }
      ReportFile file = new ReportFile(target);
      if (Files.exists(target) && !Files.isRegularFile(target)) {
        throw cannotWrite(path, "it is not a file", null);
      }
      if (Files.exists(target) && !Files.isWritable(target)) {
        throw cannotWrite(path, "it is there already, and read-only", null);
      }
      Files.createDirectories(file.directory());
      Files.delete(file.temporary());
      return file;
    } catch (IOException e) {
      throw cannotWrite(path, reason(e), e);
    }
  }

  /** {@return the absolute path} */
  public Path path() {
    return path;
  }

  /**
   * Writes the file and moves it into place.
   *
   * @param text its content
   * @throws UserException if it cannot be written; the message says why, and any older file is
   *     unchanged
   */
  public void write(String text) throws UserException {
    try {
      Path temporary = temporary();
      Thread hook = new Thread(() -> delete(temporary), "vgpu-report");
      Runtime.getRuntime().addShutdownHook(hook);
      try {
        Files.writeString(temporary, text, UTF_8);
        Files.move(temporary, path, StandardCopyOption.ATOMIC_MOVE);
      } finally {
        delete(temporary);
        Runtime.getRuntime().removeShutdownHook(hook);
      }
    } catch (IOException e) {
      throw cannotWrite(path, reason(e), e);
    }
  }

  private Path temporary() throws IOException {
    return Files.createFile(
        directory()
            .resolve("." + path.getFileName() + "." + ProcessHandle.current().pid() + ".tmp"));
  }

  private Path directory() {
    Path parent = path.getParent();
    return parent == null ? path : parent;
  }

  private static void delete(Path file) {
    try {
      Files.deleteIfExists(file);
    } catch (IOException e) {
      // The temporary file stays; nothing more can be done.
    }
  }

  private static UserException cannotWrite(Path path, String reason, @Nullable Throwable cause) {
    return new UserException(
        "the report "
            + path
            + " cannot be written: "
            + reason
            + "; give another place with --report FILE",
        cause);
  }

  private static String reason(IOException e) {
    String kind =
        switch (e.getClass().getSimpleName()) {
          case "AccessDeniedException" -> "no permission for ";
          case "FileAlreadyExistsException" -> "a file is in the way: ";
          case "NoSuchFileException" -> "there is no ";
          default -> "";
        };
    return kind + e.getMessage();
  }
}
