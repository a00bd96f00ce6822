package dev.vgpu.bench.demo.process;

import static java.nio.charset.StandardCharsets.UTF_8;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ObjectNode;
import dev.vgpu.VirtualGpu;
import dev.vgpu.bench.demo.child.Children;
import dev.vgpu.bench.demo.figure.Disturbance;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;

/** Starts the sample programs under virtual GPUs and reads their output. */
final class ProcessPrograms implements AutoCloseable {
  private static final ObjectMapper JSON = new ObjectMapper();

  private final Children children = new Children();
  private final Path programs;
  private final Path outputs;

  /**
   * Creates an object that has started nothing yet.
   *
   * @param programs the directory of the programs
   * @param outputs the directory for their output
   */
  ProcessPrograms(Path programs, Path outputs) {
    this.programs = programs;
    this.outputs = outputs;
  }

  /** A started program. */
  static final class Started {
    private final Process process;
    private final Path output;
    private final String name;

    private Started(Process process, Path output, String name) {
      this.process = process;
      this.output = output;
      this.name = name;
    }

    /** Asks the program to exit; it prints its figures before. */
    void end() {
      process.destroy();
    }

    /**
     * {@return the figures that the program printed, after it has ended}
     *
     * @throws IOException if the program failed; the message says how
     */
    ObjectNode figures() throws IOException, InterruptedException {
      int exitCode = process.waitFor();
      String text = Files.readString(output, UTF_8).strip();
      if (exitCode == 0) {
        JsonNode json = JSON.readTree(text);
        if (json instanceof ObjectNode object) {
          return object;
        }
      }
      throw new IOException("the program " + name + " ended with " + exitCode + ": " + text);
    }
  }

  /**
   * Starts a program.
   *
   * @param gpu the virtual GPU under which it runs
   * @param program the program's name, then its arguments
   */
  Started start(VirtualGpu gpu, List<String> program) throws IOException {
    List<String> command = new ArrayList<>(program);
    command.set(0, programs.resolve(program.get(0)).toString());
    Path output = outputs.resolve(gpu.id() + ".txt");
    ProcessBuilder builder =
        new ProcessBuilder(command).redirectErrorStream(true).redirectOutput(output.toFile());
    return new Started(children.start(builder, gpu::start), output, program.get(0));
  }

  /** {@return the processor time used until now} */
  Disturbance.Reading reading() {
    return Disturbance.Reading.of(children);
  }

  @Override
  public void close() {
    children.close();
  }
}
