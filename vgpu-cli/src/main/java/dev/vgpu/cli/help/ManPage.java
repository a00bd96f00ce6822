package dev.vgpu.cli.help;

import java.util.Arrays;
import java.util.Comparator;
import java.util.List;
import java.util.Locale;
import picocli.CommandLine;
import picocli.CommandLine.Help.Ansi;
import picocli.CommandLine.Model.ArgSpec;
import picocli.CommandLine.Model.CommandSpec;
import picocli.CommandLine.Model.OptionSpec;
import picocli.CommandLine.Model.PositionalParamSpec;

/** The manual page of a command, in the man(7) language, built from its help. */
final class ManPage {
  private static final String EXIT_CODES = "Exit codes: ";
  private static final int WIDER_THAN_ANY = 10_000;

  private final CommandSpec spec;
  private final StringBuilder text = new StringBuilder();

  private ManPage(CommandSpec spec) {
    this.spec = spec;
  }

  /** {@return the name of a command's page without the section: {@code vgpu-mig-plan}} */
  static String name(CommandSpec spec) {
    return spec.qualifiedName("-");
  }

  /** {@return the page of a command} */
  static String of(CommandSpec spec) {
    return new ManPage(spec).write();
  }

  private String write() {
    String[] description = spec.usageMessage().description();
    line(".TH " + name(spec).toUpperCase(Locale.ROOT) + " 1 \"\" \"vgpu\" \"User Commands\"");
    section("NAME");
    line(escape(name(spec)) + " \\- " + escape(withoutStop(plain(description[0]))));
    section("SYNOPSIS");
    synopsis();
    section("DESCRIPTION");
    paragraphs(description);
    arguments();
    commands();
    footer();
    section("SEE ALSO");
    seeAlso();
    return text.toString();
  }

  /** The command's name in bold. The help wraps the rest; man does that by itself. */
  private void synopsis() {
    spec.usageMessage().autoWidth(false).width(WIDER_THAN_ANY);
    String line =
        new CommandLine.Help(spec, CommandLine.Help.defaultColorScheme(Ansi.OFF))
            .synopsis(0)
            .strip()
            .replaceAll("\\s+", " ");
    String name = spec.qualifiedName();
    line(".B " + escape(name));
    line(escape(line.substring(name.length()).strip()));
  }

  private void arguments() {
    List<PositionalParamSpec> parameters =
        spec.positionalParameters().stream().filter(parameter -> !parameter.hidden()).toList();
    List<OptionSpec> options =
        spec.options().stream()
            .filter(option -> !option.hidden())
            .sorted(Comparator.comparing(OptionSpec::longestName))
            .toList();
    section("OPTIONS");
    for (PositionalParamSpec parameter : parameters) {
      item("\\fI" + escape(parameter.paramLabel()) + "\\fR", parameter);
    }
    for (OptionSpec option : options) {
      item(names(option), option);
    }
  }

  private static String names(OptionSpec option) {
    String names = "\\fB" + escape(String.join(", ", option.names())) + "\\fR";
    return option.arity().max() == 0
        ? names
        : names + "=\\fI" + escape(option.paramLabel()) + "\\fR";
  }

  private void item(String label, ArgSpec argument) {
    line(".TP");
    line(label);
    Arrays.stream(argument.description()).forEach(part -> line(escape(plain(part))));
  }

  private void commands() {
    if (spec.subcommands().isEmpty()) {
      return;
    }
    section("COMMANDS");
    for (CommandLine command : spec.subcommands().values()) {
      CommandSpec sub = command.getCommandSpec();
      line(".TP");
      line("\\fB" + escape(name(sub)) + "\\fR(1)");
      line(escape(plain(sub.usageMessage().description()[0])));
    }
  }

  private void footer() {
    String[] footer = spec.usageMessage().footer();
    String[] notes =
        Arrays.stream(footer).filter(part -> !part.startsWith(EXIT_CODES)).toArray(String[]::new);
    if (!String.join("", notes).isBlank()) {
      section("NOTES");
      paragraphs(notes);
    }
    for (String part : footer) {
      if (part.startsWith(EXIT_CODES)) {
        section("EXIT STATUS");
        line(escape(plain(part.substring(EXIT_CODES.length()))));
      }
    }
  }

  private void seeAlso() {
    CommandSpec parent = spec.parent() == null ? spec : spec.parent();
    String pages =
        parent.subcommands().values().stream()
            .map(command -> command.getCommandSpec())
            .filter(sibling -> sibling != spec)
            .map(sibling -> escape(name(sibling)) + "(1)")
            .reduce(parent == spec ? "" : escape(name(parent)) + "(1)", ManPage::listed);
    line(pages);
  }

  private static String listed(String list, String next) {
    return list.isEmpty() ? next : list + ", " + next;
  }

  private void paragraphs(String... parts) {
    for (String part : parts) {
      line(part.isBlank() ? ".PP" : escape(plain(part)));
    }
  }

  private void section(String title) {
    line(".SH " + title);
  }

  private void line(String line) {
    text.append(line).append('\n');
  }

  /** A description as the help shows it: descriptions are format strings. */
  private static String plain(String description) {
    return String.format(Locale.ROOT, description);
  }

  private static String withoutStop(String sentence) {
    return sentence.endsWith(".") ? sentence.substring(0, sentence.length() - 1) : sentence;
  }

  /** Escapes text so that no line is a request, and a minus sign can be copied from the page. */
  private static String escape(String plain) {
    String escaped = plain.replace("\\", "\\e").replace("-", "\\-");
    return escaped.startsWith(".") || escaped.startsWith("'") ? "\\&" + escaped : escaped;
  }
}
