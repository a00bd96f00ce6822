package dev.vgpu.cli.command;

import com.fasterxml.jackson.core.JsonProcessingException;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.SerializationFeature;
import com.fasterxml.jackson.databind.node.ObjectNode;
import dev.vgpu.cli.console.Console;
import java.io.UncheckedIOException;
import picocli.CommandLine.Option;

/** The {@code --json} option of the commands that print data. Mutable; picocli sets it. */
public final class JsonOption {
  @Option(names = "--json", description = "Print one JSON object on standard output.")
  private boolean json;

  /** {@return whether the option was given} */
  public boolean isGiven() {
    return json;
  }

  /** Prints an object, indented. */
  public static void print(Console console, ObjectNode object) {
    // Created here, so that a command that prints no JSON loads no JSON classes.
    ObjectMapper mapper = new ObjectMapper().enable(SerializationFeature.INDENT_OUTPUT);
    try {
      console.out().println(mapper.writeValueAsString(object));
    } catch (JsonProcessingException e) {
      throw new UncheckedIOException(e);
    }
  }
}
