package dev.vgpu.dashboard;

import static java.nio.charset.StandardCharsets.UTF_8;

import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.io.InputStream;
import java.io.UncheckedIOException;
import java.util.Map;
import java.util.Optional;
import java.util.stream.Collectors;
import java.util.zip.GZIPOutputStream;

/** The files of the page, read once. Immutable. */
final class PageFiles {
  private static final Map<String, String> TYPES =
      Map.of(
          "index.html", "text/html; charset=utf-8",
          "login.html", "text/html; charset=utf-8",
          "style.css", "text/css; charset=utf-8",
          "page.js", "text/javascript; charset=utf-8",
          "parts.js", "text/javascript; charset=utf-8",
          "views.js", "text/javascript; charset=utf-8",
          "charts.js", "text/javascript; charset=utf-8",
          "login.js", "text/javascript; charset=utf-8",
          "icon.svg", "image/svg+xml");

  /**
   * A file.
   *
   * @param type its media type
   * @param plain its bytes
   * @param gzipped the same, compressed
   */
  @SuppressWarnings("ArrayRecordComponent") // never compared or changed
  record PageFile(String type, byte[] plain, byte[] gzipped) {
    static PageFile of(String type, byte[] plain) {
      ByteArrayOutputStream gzipped = new ByteArrayOutputStream();
      try (GZIPOutputStream to = new GZIPOutputStream(gzipped)) {
        to.write(plain);
      } catch (IOException e) {
        throw new UncheckedIOException(e);
      }
      return new PageFile(type, plain, gzipped.toByteArray());
    }

    /** {@return this file with one text replaced by another} */
    PageFile with(String text, String other) {
      return of(type, new String(plain, UTF_8).replace(text, other).getBytes(UTF_8));
    }
  }

  private final Map<String, PageFile> files;

  PageFiles() {
    files =
        TYPES.entrySet().stream()
            .collect(
                Collectors.toUnmodifiableMap(
                    Map.Entry::getKey,
                    entry -> PageFile.of(entry.getValue(), read(entry.getKey()))));
  }

  private static byte[] read(String name) {
    try (InputStream in = PageFiles.class.getResourceAsStream(name)) {
      if (in == null) {
        throw new IllegalStateException("this build lacks a file of the dashboard: " + name);
      }
      return in.readAllBytes();
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
  }

  /** {@return the file for a path that begins with a slash; empty if there is none} */
  Optional<PageFile> at(String path) {
    return Optional.ofNullable(
        files.get(
            switch (path) {
              case "/" -> "index.html";
              case "/login" -> "login.html";
              default -> path.substring(1);
            }));
  }
}
