package dev.vgpu.cli.help;

import picocli.CommandLine;
import picocli.CommandLine.Model.CommandSpec;
import picocli.CommandLine.Model.OptionSpec;

/** A completion script for fish; picocli generates one for bash only. */
final class FishCompletion {
  private final StringBuilder text = new StringBuilder();

  private FishCompletion() {}

  /** {@return the script} */
  static String of(CommandSpec root) {
    FishCompletion completion = new FishCompletion();
    completion.add(root, "");
    return completion.text.toString();
  }

  /** A command's words are offered once its name and those of its parent commands are present. */
  private void add(CommandSpec spec, String above) {
    String given =
        spec.parent() == null ? "" : above + "__fish_seen_subcommand_from " + spec.name();
    String and = given.isEmpty() ? "" : given + "; and ";
    StringBuilder names = new StringBuilder();
    for (CommandLine command : spec.subcommands().values()) {
      names.append(' ').append(command.getCommandName());
    }
    for (CommandLine command : spec.subcommands().values()) {
      CommandSpec sub = command.getCommandSpec();
      String none = and + "not __fish_seen_subcommand_from" + names;
      complete(none, "-f -a " + sub.name(), sub.usageMessage().description());
    }
    for (OptionSpec option : spec.options()) {
      if (!option.hidden()) {
        complete(given, words(option), option.description());
      }
    }
    spec.subcommands().values().forEach(command -> add(command.getCommandSpec(), and));
  }

  private static String words(OptionSpec option) {
    StringBuilder words = new StringBuilder();
    for (String name : option.names()) {
      words.append(name.startsWith("--") ? " -l " : " -s ").append(name.replaceFirst("^-+", ""));
    }
    return (option.arity().max() == 0 ? words : words.append(" -r")).substring(1);
  }

  private void complete(String condition, String what, String... description) {
    text.append("complete -c vgpu");
    if (!condition.isEmpty()) {
      text.append(" -n ").append(quoted(condition));
    }
    text.append(' ').append(what);
    if (description.length > 0) {
      text.append(" -d ").append(quoted(firstSentence(description[0])));
    }
    text.append('\n');
  }

  private static String firstSentence(String description) {
    int end = description.indexOf(". ");
    String sentence = end < 0 ? description : description.substring(0, end);
    return sentence.endsWith(".") ? sentence.substring(0, sentence.length() - 1) : sentence;
  }

  private static String quoted(String word) {
    return "'" + word.replace("\\", "\\\\").replace("'", "\\'") + "'";
  }
}
