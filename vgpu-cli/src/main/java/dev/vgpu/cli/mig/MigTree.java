package dev.vgpu.cli.mig;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.JsonNodeFactory;
import dev.vgpu.nvml.mig.MigDriver;
import dev.vgpu.nvml.mig.MigHolders;
import java.nio.file.Path;
import org.jspecify.annotations.Nullable;

/** Reads the MIG instances of the GPUs repeatedly. Safe for use by several threads. */
public final class MigTree implements AutoCloseable {
  private final Path runDirectory;
  private @Nullable MigDriver driver;

  /**
   * Creates a reader that has opened nothing yet.
   *
   * @param runDirectory where leases are looked up
   */
  public MigTree(Path runDirectory) {
    this.runDirectory = runDirectory;
  }

  /** {@return the output of {@code mig list --json}; on failure, the reason as {@code unknown}} */
  public synchronized JsonNode read() {
    try {
      MigDriver open = driver == null ? MigDriver.open() : driver;
      driver = open;
      return MigListCommand.json(open.gpus(), MigHolders.ofDevices(runDirectory));
    } catch (RuntimeException e) {
      close(); // The next read opens it again.
      String why = e.getMessage() == null ? e.toString() : e.getMessage();
      return JsonNodeFactory.instance.objectNode().put("unknown", why);
    }
  }

  @Override
  public synchronized void close() {
    if (driver != null) {
      driver.close();
      driver = null;
    }
  }
}
