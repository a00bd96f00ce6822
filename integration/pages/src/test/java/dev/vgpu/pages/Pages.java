package dev.vgpu.pages;

import static java.nio.charset.StandardCharsets.UTF_8;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import java.util.stream.Stream;

/** The pages of the checkout that show commands: those of the site, and the READMEs. */
final class Pages {
  private static final Pattern FENCE =
      Pattern.compile("(?ms)^( *)```(\\w*)[^\n]*\n(.*?)^\\1```$|^(?:# |## )([^\n]*)$");
  private static final String SHELL = "sh";

  private Pages() {}

  /** A section of a page: its lines of shell, and the last text of another language in it. */
  record Section(String page, String title, List<String> lines, String data) {
    @Override
    public String toString() {
      return page + ": " + title;
    }
  }

  /** {@return the pages, by their paths below the checkout} */
  static List<Path> in(Path home) throws IOException {
    List<Path> pages = new ArrayList<>(List.of(home.resolve("README.md")));
    pages.add(home.resolve("SECURITY.md"));
    for (Path folder : children(home)) {
      String name = folder.getFileName().toString();
      if (name.startsWith("vgpu-")) {
        pages.addAll(markdownIn(folder));
        pages.addAll(markdownIn(folder.resolve("docs")));
      }
    }
    for (Path sample : children(home.resolve("samples"))) {
      pages.addAll(markdownIn(sample));
    }
    pages.addAll(markdownIn(home.resolve("site")));
    for (Path folder : children(home.resolve("site"))) {
      pages.addAll(markdownIn(folder));
    }
    return pages;
  }

  private static List<Path> children(Path folder) throws IOException {
    try (Stream<Path> all = Files.list(folder)) {
      return all.filter(Files::isDirectory).sorted().toList();
    }
  }

  private static List<Path> markdownIn(Path folder) throws IOException {
    if (!Files.isDirectory(folder)) {
      return List.of();
    }
    try (Stream<Path> all = Files.list(folder)) {
      return all.filter(file -> file.toString().endsWith(".md")).sorted().toList();
    }
  }

  /** {@return the sections that have lines of shell} */
  static Stream<Section> sections(Path home, Path page) {
    String name = home.relativize(page).toString();
    Map<String, Section> sections = new LinkedHashMap<>();
    String title = "";
    for (Matcher found = FENCE.matcher(read(page)); found.find(); ) {
      if (found.group(4) != null) {
        title = found.group(4);
        continue;
      }
      Section section =
          sections.getOrDefault(title, new Section(name, title, new ArrayList<>(), ""));
      if (found.group(2).equals(SHELL)) {
        section.lines().addAll(linesOf(found.group(3)));
      } else {
        section = new Section(name, title, section.lines(), found.group(3));
      }
      sections.put(title, section);
    }
    return sections.values().stream().filter(section -> !section.lines().isEmpty());
  }

  /** {@return the languages of the page's fences; the empty string if a fence names none} */
  static List<String> languages(Path page) {
    return FENCE
        .matcher(read(page))
        .results()
        .filter(found -> found.group(4) == null)
        .map(found -> found.group(2))
        .toList();
  }

  /** The commands without comments; one that continues on the next line is one line. */
  private static List<String> linesOf(String fence) {
    return fence
        .replaceAll("\\\\\n\\s*", "")
        .lines()
        .map(line -> line.replaceFirst("(^|\\s+)#\\s.*$", "").strip())
        .filter(line -> !line.isEmpty())
        .toList();
  }

  private static String read(Path page) {
    try {
      return Files.readString(page, UTF_8);
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
  }
}
