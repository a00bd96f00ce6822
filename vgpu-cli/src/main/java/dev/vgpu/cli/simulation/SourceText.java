package dev.vgpu.cli.simulation;

import static java.nio.charset.StandardCharsets.UTF_8;

import dev.vgpu.cli.console.UserException;
import dev.vgpu.files.TooLongException;
import dev.vgpu.files.TrustedFiles;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.charset.CharacterCodingException;
import java.nio.file.Files;
import java.nio.file.NoSuchFileException;
import java.nio.file.Path;
import java.util.ArrayDeque;
import java.util.Deque;
import java.util.Optional;
import org.jspecify.annotations.Nullable;
import org.snakeyaml.engine.v2.api.LoadSettings;
import org.snakeyaml.engine.v2.composer.Composer;
import org.snakeyaml.engine.v2.events.AliasEvent;
import org.snakeyaml.engine.v2.events.CollectionEndEvent;
import org.snakeyaml.engine.v2.events.CollectionStartEvent;
import org.snakeyaml.engine.v2.events.Event;
import org.snakeyaml.engine.v2.exceptions.Mark;
import org.snakeyaml.engine.v2.exceptions.MarkedYamlEngineException;
import org.snakeyaml.engine.v2.exceptions.YamlEngineException;
import org.snakeyaml.engine.v2.nodes.Node;
import org.snakeyaml.engine.v2.parser.Parser;
import org.snakeyaml.engine.v2.parser.ParserImpl;
import org.snakeyaml.engine.v2.scanner.StreamReader;

/**
 * A file in YAML 1.2, which includes JSON. Every error names its place in the file. Immutable.
 *
 * @param path the file
 * @param settings the parser's settings
 */
record SourceText(Path path, LoadSettings settings) {
  private static final int MOST_BYTES = 1 << 20;
  private static final int MOST_LEVELS = 30;
  private static final int MOST_ALIASES = 200;

  static SourceText at(Path path) {
    LoadSettings settings =
        LoadSettings.builder().setLabel(path.toString()).setAllowNonScalarKeys(true).build();
    return new SourceText(path, settings);
  }

  /** Reads the file, which must be one document, a mapping. */
  Section read(String what) throws UserException {
    String text = text();
    try {
      check(text);
      Optional<Node> root = new Composer(settings, parser(text)).getSingleNode();
      if (root.isEmpty()) {
        throw new UserException(path + " is empty; it has to describe " + what);
      }
      return new Value(this, root.get(), what).section(what);
    } catch (MarkedYamlEngineException e) {
      throw error(
          e.getProblemMark().or(e::getContextMark),
          "not YAML or JSON: " + oneLine(e.getProblem()),
          e);
    } catch (YamlEngineException e) {
      throw error(Optional.empty(), "not YAML or JSON: " + oneLine(e.getMessage()), e);
    }
  }

  private Parser parser(String text) {
    return new ParserImpl(settings, new StreamReader(settings, text));
  }

  private String text() throws UserException {
    try {
      if (Files.isDirectory(path)) {
        throw new UserException(path + " is a directory; give a file");
      }
      // Limits the bytes read, not the file's length: special files report no length, and /dev/zero
      // never ends.
      byte[] bytes = TrustedFiles.readAtMost(path, MOST_BYTES);
      return UTF_8.newDecoder().decode(ByteBuffer.wrap(bytes)).toString();
    } catch (NoSuchFileException e) {
      throw new UserException(path + " does not exist; give a file that describes a mix", e);
    } catch (TooLongException e) {
      throw new UserException(path + " is longer than a mebibyte; give a shorter file", e);
    } catch (CharacterCodingException e) {
      throw new UserException(path + " is not UTF-8; save it as UTF-8", e);
    } catch (IOException e) {
      throw new UserException(path + " cannot be read: " + e, e);
    }
  }

  /**
   * Rejects what could occupy a reader for ever: unbounded nesting, and aliases of an enclosing
   * node.
   */
  private void check(String text) throws UserException {
    Deque<String> open = new ArrayDeque<>();
    int aliases = 0;
    for (Parser parser = parser(text); parser.hasNext(); ) {
      Event event = parser.next();
      if (event instanceof CollectionStartEvent start) {
        open.push(start.getAnchor().map(Object::toString).orElse(""));
        if (open.size() > MOST_LEVELS) {
          throw error(event.getStartMark(), "nested more than " + MOST_LEVELS + " levels", null);
        }
      } else if (event instanceof CollectionEndEvent) {
        open.pop();
      } else if (event instanceof AliasEvent alias) {
        String name = alias.getAlias().toString();
        if (open.contains(name)) {
          throw error(
              event.getStartMark(),
              "a loop: *" + name + " stands within what it stands for; write it out",
              null);
        }
        aliases++;
        if (aliases > MOST_ALIASES) {
          throw error(event.getStartMark(), "more than " + MOST_ALIASES + " aliases", null);
        }
      }
    }
  }

  /** An error at a place in the file. */
  UserException error(Node where, String problem) {
    return error(where.getStartMark(), problem, null);
  }

  UserException error(Node where, String problem, Throwable cause) {
    return error(where.getStartMark(), problem, cause);
  }

  private UserException error(Optional<Mark> where, String problem, @Nullable Throwable cause) {
    String place =
        where
            .map(mark -> ", line " + (mark.getLine() + 1) + ", column " + (mark.getColumn() + 1))
            .orElse("");
    return new UserException(path + place + ": " + problem, cause);
  }

  private static String oneLine(@Nullable String text) {
    return text == null ? "" : text.strip().replaceAll("\\s+", " ");
  }
}
